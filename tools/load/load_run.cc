#include "tools/load/load_run.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "tools/load/call.h"
#include "tools/load/request_source.h"

namespace longshort::load {
namespace {

// The calls of a run that are not over. Thread-safe.
class RunningCalls final {
 public:
  void Start(const std::shared_ptr<Call>& call) {
    bool too_late = false;
    {
      const MutexLock lock(mutex_);
      calls_[call.get()] = call;
      too_late = cut_off_;
    }
    call->Start();
    if (too_late) call->Cancel();
  }

  // Returns the outcome of a call that has ended. The call may be destroyed.
  CallOutcome Remove(Call& call) {
    CallOutcome outcome = std::move(call.outcome());
    std::shared_ptr<Call> ended;  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    const auto found = calls_.find(&call);
    ended = std::move(found->second);
    calls_.erase(found);
    outcome.cut_off = cut_off_ && outcome.code == grpc::StatusCode::CANCELLED;
    return outcome;
  }

  void CutOff() {
    std::vector<std::shared_ptr<Call>> calls;
    {
      const MutexLock lock(mutex_);
      cut_off_ = true;
      for (const auto& [address, call] : calls_) calls.push_back(call);
    }
    for (const std::shared_ptr<Call>& call : calls) call->Cancel();
  }

 private:
  Mutex mutex_;
  std::unordered_map<const Call*, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  bool cut_off_ ABSL_GUARDED_BY(mutex_) = false;
};

// One workload of a run. It has N callers (closed loop) or one arrival process (open loop).
class Traffic final {
 public:
  Traffic(const RunClock& clock, std::vector<Stubs>& stubs, const Workload& workload, RequestSource source,
          absl::Duration until, RunningCalls& running)
      : clock_(clock),
        stubs_(stubs),
        workload_(workload),
        source_(std::move(source)),
        until_(until),
        running_(running) {}

  // Sends until the time is up or all requests are sent. Open loop: blocks until then. Closed loop: starts the callers.
  void Send(uint64_t seed) {
    if (workload_.open_loop()) return SendByArrivals(seed);
    {
      const MutexLock lock(mutex_);
      open_ += workload_.concurrency;
    }
    for (int64_t i = 0; i < workload_.concurrency; ++i) SendWhenFree();
  }

  // Waits until all requests are sent and every call has ended, or until `deadline`. Returns false at the deadline.
  bool WaitUntilOver(absl::Duration deadline) {
    const MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, deadline - clock_.Now(),
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ == 0; });
  }

  std::vector<CallOutcome> TakeOutcomes() {
    const MutexLock lock(mutex_);
    return std::move(outcomes_);
  }

 private:
  void SendByArrivals(uint64_t seed) {
    PoissonArrivals arrivals(workload_.rate, seed);
    for (absl::Duration due = arrivals.Next(); due < until_; due = arrivals.Next()) {
      const std::optional<int64_t> index = NextIndex();
      if (!index.has_value()) return;
      // The call is made before it is due, so that this takes no time from its latency.
      const std::shared_ptr<Call> call = Make(*index, due, [this](Call& ended) {
        Keep(ended);
        Leave();
      });
      std::this_thread::sleep_until(clock_.At(due));
      {
        const MutexLock lock(mutex_);
        ++open_;
      }
      running_.Start(call);
    }
  }

  // Sends one caller's next request, or ends the caller.
  void SendWhenFree() {
    const absl::Duration now = clock_.Now();
    const std::optional<int64_t> index = now < until_ ? NextIndex() : std::nullopt;
    if (!index.has_value()) return Leave();
    running_.Start(Make(*index, now, [this](Call& ended) {
      Keep(ended);
      SendWhenFree();
    }));
  }

  std::shared_ptr<Call> Make(int64_t index, absl::Duration due, Call::OnEnd on_end) {
    const Stubs& stubs = stubs_[static_cast<size_t>(index) % stubs_.size()];
    return MakeCall(clock_, stubs, workload_, source_.Make(index), due, std::move(on_end));
  }

  std::optional<int64_t> NextIndex() {
    const int64_t index = next_.fetch_add(1);
    if (workload_.requests > 0 && index >= workload_.requests) return std::nullopt;
    return index;
  }

  void Keep(Call& ended) {
    CallOutcome outcome = running_.Remove(ended);
    const MutexLock lock(mutex_);
    outcomes_.push_back(std::move(outcome));
  }

  void Leave() {
    const MutexLock lock(mutex_);
    --open_;
    changed_.NotifyAll();
  }

  const RunClock& clock_;
  std::vector<Stubs>& stubs_;
  const Workload& workload_;
  const RequestSource source_;
  const absl::Duration until_;
  RunningCalls& running_;
  std::atomic<int64_t> next_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  int64_t open_ ABSL_GUARDED_BY(mutex_) = 0;  // callers of a closed loop, or calls of an open one
  std::vector<CallOutcome> outcomes_ ABSL_GUARDED_BY(mutex_);
};

absl::Duration LastEnd(const std::vector<std::vector<CallOutcome>>& outcomes) {
  absl::Duration last = absl::ZeroDuration();
  for (const std::vector<CallOutcome>& of_workload : outcomes) {
    for (const CallOutcome& outcome : of_workload) last = std::max(last, outcome.ended);
  }
  return last + absl::Nanoseconds(1);  // the interval excludes its end, and the last call counts
}

}  // namespace

absl::StatusOr<RunResult> RunLoad(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                                  const std::vector<Workload>& workloads, const RunOptions& options) {
  std::vector<Stubs> stubs;
  stubs.reserve(channels.size());
  for (const auto& channel : channels) {
    stubs.push_back({v1::Inference::NewStub(channel), inference::GRPCInferenceService::NewStub(channel)});
  }
  const RunClock clock;
  const absl::Duration until = options.warm_up + options.measured;
  RunningCalls running;
  std::vector<std::unique_ptr<Traffic>> traffic;
  traffic.reserve(workloads.size());
  for (size_t i = 0; i < workloads.size(); ++i) {
    LS_ASSIGN_OR_RETURN(RequestSource source, RequestSource::Create(workloads[i], options.seed + i));
    traffic.push_back(std::make_unique<Traffic>(clock, stubs, workloads[i], std::move(source), until, running));
  }
  std::vector<Thread> senders(workloads.size());
  for (size_t i = 0; i < workloads.size(); ++i) {
    LS_RETURN_IF_ERROR(senders[i].Start("the thread that sends a workload",
                                        [&traffic, &options, i] { traffic[i]->Send(options.seed + i); }));
  }
  for (Thread& sender : senders) sender.Join();

  bool over = true;
  for (const auto& one : traffic) over = one->WaitUntilOver(until + options.grace) && over;
  if (!over) running.CutOff();
  RunResult result;
  for (const auto& one : traffic) {
    one->WaitUntilOver(absl::Hours(24));  // cancelled calls end at once
    result.outcomes.push_back(one->TakeOutcomes());
  }
  // If the requests ended before the time was up, the time without traffic does not count.
  const bool bounded =
      std::all_of(workloads.begin(), workloads.end(), [](const Workload& w) { return w.requests > 0; });
  result.begin = options.warm_up;
  result.end = bounded ? std::min(until, LastEnd(result.outcomes)) : until;
  return result;
}

}  // namespace longshort::load
