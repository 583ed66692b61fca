#include "core/generation/language_model_replica.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace longshort {
namespace {

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace

absl::Status LanguageModelReplica::Build() {
  LS_ASSIGN_OR_RETURN(model_, prototype_.Replicate(options_.device));
  LS_ASSIGN_OR_RETURN(loop_, StepLoop::Create(*model_, queue_, clock_, observer_, options_.step_loop));
  return absl::OkStatus();
}

bool LanguageModelReplica::RunRound(bool end_now) {
  if (loop_ == nullptr && !Rebuild(end_now)) return false;
  if (end_now) loop_->EndAll(Stopping());
  const bool more = loop_->RunOnce();
  if (!loop_->broken()) return more;
  GiveUp();
  return true;
}

void LanguageModelReplica::GiveUp() {
  const int worker = options_.step_loop.worker;
  const bool on_trial = queue_.IsOnTrial(worker);
  loop_.reset();
  model_.reset();
  replacement_.OnModelGivenUp(on_trial, clock_.Now());
  queue_.OnModelGivenUp(worker);
  if (on_trial) TellThatThereIsNone();
}

void LanguageModelReplica::TellThatThereIsNone() {
  observer_.OnState({});
  queue_.OnWorkerFull(options_.step_loop.worker);
}

bool LanguageModelReplica::Rebuild(bool end_now) {
  const absl::Time now = clock_.Now();
  if (now >= replacement_.next_try()) {
    const absl::Status built = Build();
    observer_.OnWorkerRebuilt(built);
    if (built.ok()) return true;
    model_.reset();
    replacement_.OnNoneToBeHad(now);
    TellThatThereIsNone();
  }
  std::vector<std::unique_ptr<Job>> ended = end_now ? queue_.TakeAll() : queue_.TakeAbandoned(now);
  for (const std::unique_ptr<Job>& job : ended) {
    const absl::Status abandoned = job->WhyAbandoned(now);
    queue_.Settle(*job, now);
    job->GiveBack();
    job->Finish(abandoned.ok() ? Stopping() : abandoned, now);
  }
  return false;
}

}  // namespace longshort
