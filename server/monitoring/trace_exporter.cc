#include "server/monitoring/trace_exporter.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/random_number.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// The thread's priority: it gets idle CPU time, and about a hundredth of a busy CPU.
constexpr int kMinPriority = 19;

// How long a stop waits for the thread to note that its export was cancelled.
constexpr absl::Duration kLastNotes = absl::Milliseconds(200);

int64_t CountSpans(const std::vector<std::unique_ptr<CallTrace>>& batch) {
  int64_t spans = 0;
  for (const std::unique_ptr<CallTrace>& call : batch) spans += call->spans();
  return spans;
}

}  // namespace

TraceExporter::TraceExporter(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics, Logger& log)
    : options_(options),
      queue_(queue),
      metrics_(metrics),
      log_(log),
      resource_(ResourceOf(options)),
      pause_(kFirstPause) {}

TraceExporter::~TraceExporter() {
  Shutdown(absl::ZeroDuration());
  thread_.Join();
}

void TraceExporter::Shutdown(absl::Duration patience) {
  queue_.Close();
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; };
  const MutexLock lock(mutex_);
  stop_at_ = std::min(stop_at_, MonotonicNow() + patience);
  changed_.NotifyAll();
  changed_.WaitFor(mutex_, stop_at_ - MonotonicNow(), done);
  given_up_ = true;
  if (client_ != nullptr) client_->Cancel();
  if (std::exchange(was_shut_down_, true) || !thread_.started()) return;
  changed_.WaitFor(mutex_, kLastNotes, done);
  const int64_t lost = lost_at_stop_ + in_flight_ + queue_.spans();
  if (lost == 0) return;
  log_.Log(LogLevel::kWarning, "the server stops before the collector has all spans",
           {{"collector", options_.endpoint}, {"spans", lost}});
}

bool TraceExporter::given_up() {
  const MutexLock lock(mutex_);
  return given_up_;
}

void TraceExporter::SleepUntil(absl::Time time) {
  const MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, time - MonotonicNow(),
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_at_ != absl::InfiniteFuture(); });
}

void TraceExporter::Run() {
  // Calls take precedence over exports, even if the server was started with real-time priority: on busy CPUs spans
  // wait, and may be dropped. Errors do not matter.
  const sched_param ordinary = {};
  pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kMinPriority);
  for (;;) {
    if (not_before_ > MonotonicNow()) SleepUntil(not_before_);
    const Batch batch = queue_.Take();
    if (batch.empty()) break;
    Export(batch);
  }
  const MutexLock lock(mutex_);
  done_ = true;
  changed_.NotifyAll();
}

void TraceExporter::Export(const Batch& batch) {
  const int64_t spans = CountSpans(batch);
  const absl::Time now = MonotonicNow();
  {
    const MutexLock lock(mutex_);
    in_flight_ = spans;
  }
  const bool is_exported = !given_up() && Send(EncodeSpans(resource_, batch, ToWallClock(now) - now), spans);
  if (!is_exported) metrics_.CountDroppedSpans(SpanLoss::kFailed, spans);
  const MutexLock lock(mutex_);
  in_flight_ = 0;
  if (!is_exported && stop_at_ != absl::InfiniteFuture()) lost_at_stop_ += spans;
}

bool TraceExporter::Send(const std::string& request, int64_t spans) {
  const absl::Time end = MonotonicNow() + options_.export_timeout;
  for (;;) {
    const OtlpAnswer answer = TryOnce(request);
    if (answer.status.ok()) {
      Response response;
      // An unreadable answer counts as an empty one: the spans were accepted.
      if (!response.ParseFromString(answer.body)) response.Clear();
      return NoteSuccess(response, spans), true;
    }
    if (answer.retry.has_value()) {
      not_before_ = MonotonicNow() + std::max(*answer.retry, WithJitter(pause_));
      pause_ = std::min(2 * pause_, kLongestPause);
    }
    const bool tries_again = answer.retry.has_value() && not_before_ < end && !given_up();
    NoteFailure(answer.status, tries_again);
    if (!tries_again) return false;
    SleepUntil(not_before_);
  }
}

absl::StatusOr<std::shared_ptr<OtlpClient>> TraceExporter::ClientForFiles() {
  std::shared_ptr<OtlpClient> current;
  {
    const MutexLock lock(mutex_);
    current = client_;
  }
  const absl::StatusOr<CollectorPems> pems = ReadCollectorPems(options_.tls_files);
  if (pems.ok() && current != nullptr && *pems == pems_) return current;
  absl::StatusOr<std::shared_ptr<OtlpClient>> made =
      pems.ok() ? OtlpClient::Make(options_, *pems) : absl::StatusOr<std::shared_ptr<OtlpClient>>(pems.status());
  if (!made.ok()) {
    const std::string why(made.status().message());
    if (current == nullptr) return absl::UnavailableError(why);
    if (std::exchange(wrong_files_, why) != why) {
      log_.Log(LogLevel::kWarning, "the new TLS files for the collector are invalid; the previous contents stay in use",
               {{"error", why}});
    }
    return current;
  }
  wrong_files_.clear();
  if (current != nullptr) log_.Info("the TLS files for the collector have changed and are in use");
  pems_ = *pems;
  const MutexLock lock(mutex_);
  client_ = *made;
  if (given_up_) client_->Cancel();
  return made;
}

OtlpAnswer TraceExporter::TryOnce(const std::string& request) {
  const absl::StatusOr<std::shared_ptr<OtlpClient>> client = ClientForFiles();
  bool last = false;
  absl::Time end;
  {
    const MutexLock lock(mutex_);
    last = stop_at_ != absl::InfiniteFuture();
    end = std::min(MonotonicNow() + options_.timeout, stop_at_);
  }
  OtlpAnswer answer{.status = client.status(), .retry = absl::ZeroDuration()};
  if (client.ok()) answer = (*client)->Send(request, end);
  // An export in flight at the shutdown is tried again.
  const MutexLock lock(mutex_);
  if (!answer.status.ok() && last) given_up_ = true;
  return answer;
}

void TraceExporter::NoteSuccess(const Response& response, int64_t spans) {
  pause_ = kFirstPause;
  not_before_ = absl::InfinitePast();
  const int64_t rejected = std::clamp<int64_t>(response.partial_success().rejected_spans(), 0, spans);
  metrics_.CountExportedSpans(spans - rejected);
  metrics_.CountDroppedSpans(SpanLoss::kRejected, rejected);
  if (std::exchange(failing_, false)) log_.Info("traces are exported again", {{"collector", options_.endpoint}});
  if (std::exchange(rejected_, rejected > 0) || rejected == 0) return;
  log_.Log(
      LogLevel::kWarning, "the collector rejects spans",
      {{"collector", options_.endpoint}, {"spans", rejected}, {"error", response.partial_success().error_message()}});
}

void TraceExporter::NoteFailure(const absl::Status& status, bool tries_again) {
  metrics_.CountFailedSpanExport();
  if (std::exchange(failing_, true)) return;
  log_.Log(LogLevel::kWarning, "export of traces failed",
           {{"collector", options_.endpoint},
            {"code", absl::StatusCodeToString(status.code())},
            {"error", std::string(status.message())},
            {"next", tries_again ? "the spans are sent again" : "the spans are dropped"}});
}

}  // namespace longshort::server
