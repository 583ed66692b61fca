#include "core/generation/language_model_replica.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "core/requests/request_context.h"

namespace longshort::core {
namespace {

// Poll interval for expired sessions, because no event signals that the time to live was shortened.
constexpr absl::Duration kExpiryPollInterval = absl::Seconds(10);

}  // namespace

absl::Status LanguageModelReplica::Build() {
  LS_ASSIGN_OR_RETURN(model_, weights_.NewReplica(options_.device));
  absl::StatusOr<std::unique_ptr<StepLoop>> loop =
      StepLoop::Create(*model_, queue_, clock_, states_, options_.step_loop);
  if (!loop.ok()) {
    model_.reset();
    return loop.status();
  }
  loop_ = *std::move(loop);
  return absl::OkStatus();
}

absl::Time LanguageModelReplica::RunRound(bool end_now) {
  if (end_now) loop_->EndAll(ServerIsStopping());
  return loop_->RunOnce() ? absl::InfinitePast() : absl::InfiniteFuture();
}

void LanguageModelReplica::FreeModel() {
  loop_.reset();
  model_.reset();
}

void LanguageModelReplica::OnNoModel() {
  states_.Set(options_.step_loop.worker, {});
  queue_.OnWorkerFull(options_.step_loop.worker);
}

void LanguageModelReplica::EndAbandoned(bool end_now) {
  const absl::Time now = clock_.Now();
  std::vector<std::unique_ptr<Job>> ended = end_now ? queue_.TakeAll() : queue_.TakeAbandoned(now);
  for (const std::unique_ptr<Job>& job : ended) {
    const absl::Status abandoned = job->CheckNotAbandoned(now);
    queue_.Complete(*job, now);
    job->ReleaseResources();
    job->Finish(abandoned.ok() ? ServerIsStopping() : abandoned, now);
  }
}

absl::Time LanguageModelReplica::RunMaintenance() {
  const absl::Time next_ends = sessions_.EndExpired();  // releasing pages posts tasks, which wake the worker
  return std::min(next_ends, clock_.Now() + kExpiryPollInterval);
}

void PostToCache(ModelWorkers& workers, int worker, std::function<void(PagedCache*)> task) {
  workers.Post(worker, [task = std::move(task)](ModelRunner* replica) {
    task(replica == nullptr ? nullptr : static_cast<LanguageModelReplica*>(replica)->cache());
  });
}

}  // namespace longshort::core
