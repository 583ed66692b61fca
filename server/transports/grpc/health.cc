#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "grpc/health/v1/health.pb.h"
#include "server/call/unary.h"
#include "server/transports/grpc/standard_services.h"

namespace longshort::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

HealthCheckResponse::ServingStatus StatusOf(std::optional<bool> serving) {
  if (!serving.has_value()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return *serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

// Writes the status of its name when it differs from the last one written. During a write it keeps no queue of changes,
// so a client that does not read costs no extra memory.
class HealthWatch final : public CallWork {
 public:
  HealthWatch(Call& call, Health& health) : call_(call), health_(health) {}

 private:
  absl::Status Take() override {
    HealthCheckRequest request;
    LS_RETURN_IF_ERROR(call_.Read(request));
    name_ = std::move(*request.mutable_service());
    const std::weak_ptr<Call> weak = call_.weak_from_this();
    LS_ASSIGN_OR_RETURN(held_, health_.watches.Add(call_.record().peer(), [weak] {
      if (const std::shared_ptr<Call> call = weak.lock()) {
        call->EndNow(absl::ResourceExhaustedError(absl::StrCat("ended to admit another watch: the server allows ",
                                                               Health::kMaxWatches, " open health watches")));
      }
    }));
    const int64_t watch = health_.registry.Watch(name_, [weak] {
      if (const std::shared_ptr<Call> call = weak.lock()) call->Advance();
    });
    const MutexLock lock(call_.mutex());
    watch_ = watch;
    return absl::OkStatus();
  }

  void Cancel(const absl::Status& reason) override { call_.End(reason); }

  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return call_.is_well(); }

  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (watch_ == 0 || !call_.is_well()) return std::nullopt;
    HealthCheckResponse message;
    message.set_status(StatusOf(health_.registry.Get(name_)));
    if (message.status() == written_) return std::nullopt;
    const auto status = message.status();
    absl::StatusOr<CallAnswer> answer = call_.Encode(std::move(message));
    if (!answer.ok()) return std::nullopt;
    written_ = status;
    return *std::move(answer);
  }

  void Ended() override {
    {
      const MutexLock lock(call_.mutex());
      health_.registry.RemoveWatch(watch_);
    }
    health_.watches.Remove(held_);
  }

  Call& call_;
  Health& health_;
  std::string name_;
  int64_t held_ = 0;
  int64_t watch_ ABSL_GUARDED_BY(call_.mutex()) = 0;
  HealthCheckResponse::ServingStatus written_ ABSL_GUARDED_BY(call_.mutex()) = HealthCheckResponse::UNKNOWN;
};

}  // namespace

void HealthRegistry::Set(const std::string& name, bool serving) {
  std::vector<std::function<void()>> callbacks;
  {
    const MutexLock lock(mutex_);
    serving_[name] = serving && !stopping_;
    for (const auto& [watch, watcher] : watchers_) {
      if (watcher.name == name) callbacks.push_back(watcher.on_change);
    }
  }
  for (const std::function<void()>& on_change : callbacks) on_change();
}

void HealthRegistry::StopServing() {
  std::vector<std::function<void()>> callbacks;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (auto& [name, serving] : serving_) serving = false;
    for (const auto& [watch, watcher] : watchers_) callbacks.push_back(watcher.on_change);
  }
  for (const std::function<void()>& on_change : callbacks) on_change();
}

std::optional<bool> HealthRegistry::Get(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = serving_.find(name);
  if (found == serving_.end()) return std::nullopt;
  return found->second;
}

std::map<std::string, bool> HealthRegistry::List() const {
  const MutexLock lock(mutex_);
  return serving_;
}

int64_t HealthRegistry::Watch(const std::string& name, std::function<void()> on_change) {
  const MutexLock lock(mutex_);
  watchers_[++last_watch_] = {name, std::move(on_change)};
  return last_watch_;
}

void HealthRegistry::RemoveWatch(int64_t watch) {
  const MutexLock lock(mutex_);
  watchers_.erase(watch);
}

std::vector<Rpc> HealthRpcs(Health& health) {
  std::vector<Rpc> rpcs = {
      AnswerAtOnce<HealthCheckRequest, HealthCheckResponse>(
          {kNoFields, "grpc.health.v1.Health/Check", kHealthAccess, "grpc.health.v1.Health.Check"},
          [&health](CallRecord&, const HealthCheckRequest& request) -> absl::StatusOr<HealthCheckResponse> {
            const std::optional<bool> serving = health.registry.Get(request.service());
            if (!serving.has_value()) return absl::NotFoundError("the server reports no health for this name");
            HealthCheckResponse answer;
            answer.set_status(StatusOf(serving));
            return answer;
          }),
      // Not public, because it lists all models.
      AnswerAtOnce<HealthListRequest, HealthListResponse>(
          {kNoFields, "grpc.health.v1.Health/List", {.scope = Scope::kObserve}, "grpc.health.v1.Health.List"},
          [&health](CallRecord&, const HealthListRequest&) -> absl::StatusOr<HealthListResponse> {
            HealthListResponse answer;
            for (const auto& [name, serving] : health.registry.List()) {
              (*answer.mutable_statuses())[name].set_status(StatusOf(serving));
            }
            return answer;
          }),
      Streaming<HealthCheckRequest, HealthCheckResponse>(
          {kNoFields, "grpc.health.v1.Health/Watch", kHealthAccess, "grpc.health.v1.Health.Watch"},
          RpcKind::kServerStream, [&health](Call& call) { return std::make_unique<HealthWatch>(call, health); }),
  };
  for (Rpc& rpc : rpcs) rpc.max_request_bytes = kMaxShortRequestBytes;
  return rpcs;
}

absl::StatusOr<int64_t> StreamLimiter::Add(const std::string& connection, std::function<void()> end_stream) {
  std::function<void()> end_other;
  int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    const auto held = connections_.find(connection);
    if (held != connections_.end() && held->second >= max_of_connection_) {
      return absl::ResourceExhaustedError(absl::StrCat("this connection has ", max_of_connection_, " ", kind_,
                                                       ", the maximum per connection; end one first"));
    }
    if (static_cast<int64_t>(streams_.size()) >= max_) {
      const auto stream = FindStreamToEnd();
      end_other = std::move(stream->end_stream);
      RemoveLocked(stream);
    }
    number = ++last_;
    const auto of = connections_.try_emplace(connection, 0).first;
    ++of->second;
    streams_.push_back({number, of, std::move(end_stream)});
    by_number_.emplace(number, std::prev(streams_.end()));
  }
  if (end_other != nullptr) end_other();
  return number;
}

void StreamLimiter::Touch(int64_t stream) {
  const MutexLock lock(mutex_);
  const auto found = by_number_.find(stream);
  if (found != by_number_.end()) streams_.splice(streams_.end(), streams_, found->second);
}

void StreamLimiter::Remove(int64_t stream) {
  const MutexLock lock(mutex_);
  if (const auto found = by_number_.find(stream); found != by_number_.end()) RemoveLocked(found->second);
}

StreamLimiter::Streams::iterator StreamLimiter::FindStreamToEnd() {
  int64_t max = 0;
  for (const auto& [connection, streams] : connections_) max = std::max(max, streams);
  return std::find_if(streams_.begin(), streams_.end(),
                      [max](const Stream& stream) { return stream.connection->second == max; });
}

void StreamLimiter::RemoveLocked(Streams::iterator stream) {
  if (--stream->connection->second == 0) connections_.erase(stream->connection);
  by_number_.erase(stream->number);
  streams_.erase(stream);
}

}  // namespace longshort::server
