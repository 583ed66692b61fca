#include "core/engine/language_model_worker.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/engine/rest.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

constexpr absl::Duration kTryAgainAfter = absl::Seconds(1);

// A session may come to be idle, or its time be made shorter, without a worker's doing: so often one looks.
constexpr absl::Duration kLookForEndedSessions = absl::Seconds(10);

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace

absl::StatusOr<std::unique_ptr<LanguageModelWorker>> LanguageModelWorker::Start(
    const LanguageModel& model, RequestQueue& queue, SessionStore& sessions, const Clock& clock,
    EngineObserver& observer, const std::atomic<bool>& end_now, const Options& options) {
  auto worker = absl::WrapUnique(new LanguageModelWorker(model, queue, sessions, clock, observer, end_now, options));
  LS_RETURN_IF_ERROR(worker->Build());
  try {
    worker->thread_ = std::thread(&LanguageModelWorker::Work, worker.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start a worker's thread: ", error.what()));
  }
  return worker;
}

LanguageModelWorker::~LanguageModelWorker() {
  if (thread_.joinable()) thread_.join();
}

void LanguageModelWorker::Post(CacheTask task) {
  {
    std::unique_lock lock(mutex_);
    if (ended_) {
      lock.unlock();
      return task(nullptr);
    }
    tasks_.push_back(std::move(task));
  }
  queue_.Wake();
}

bool LanguageModelWorker::WaitUntilEnded(absl::Time deadline) {
  const auto ended = [this] { return ended_; };
  std::unique_lock lock(mutex_);
  if (deadline == absl::InfiniteFuture()) {
    changed_.wait(lock, ended);
  } else if (const absl::Duration left = deadline - clock_.Now(); left > absl::ZeroDuration()) {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(left), ended);
  }
  return ended_;
}

void LanguageModelWorker::Work() {
  while (true) {
    const int64_t seen = queue_.changes();
    RunTasks();
    if (RunRound()) {
      idle_since_ = absl::InfiniteFuture();
      if (clock_.Now() >= look_for_ended_sessions_) EndExpiredSessions();
      continue;
    }
    if (queue_.closed() && queue_.empty() && (loop_ == nullptr || loop_->idle())) break;
    Sleep(seen);
  }
  queue_.Leave(options_.step_loop.worker);
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  RunTasks();
}

void LanguageModelWorker::Sleep(int64_t changes_seen) {
  const absl::Time next_session_ends = EndExpiredSessions();
  const absl::Time now = clock_.Now();
  idle_since_ = std::min(idle_since_, now);
  const absl::Duration longest = loop_ == nullptr ? kTryAgainAfter : resting_ ? kLookForEndedSessions : kRestAfter;
  queue_.WaitForChange(changes_seen, std::clamp(next_session_ends - now, absl::ZeroDuration(), longest));
  if (queue_.changes() != changes_seen) {
    idle_since_ = absl::InfiniteFuture();
    resting_ = false;
  } else if (!resting_ && model_ != nullptr && clock_.Now() - idle_since_ >= kRestAfter) {
    resting_ = true;
    model_->Rest();
  }
}

absl::Time LanguageModelWorker::EndExpiredSessions() {
  const absl::Time next_ends = sessions_.EndExpired();  // their pages' tasks are changes
  look_for_ended_sessions_ = std::min(next_ends, clock_.Now() + kLookForEndedSessions);
  return next_ends;
}

bool LanguageModelWorker::RunRound() {
  if (loop_ == nullptr && !Rebuild()) return false;
  if (end_now_) loop_->EndAll(Stopping());
  const bool more = loop_->RunOnce();
  if (!loop_->broken()) return more;
  GiveUp();
  return true;
}

void LanguageModelWorker::GiveUp() {
  const int worker = options_.step_loop.worker;
  const bool no_better = queue_.IsOnTrial(worker);
  loop_.reset();
  model_.reset();
  next_try_ = clock_.Now();
  queue_.OnModelGivenUp(worker);
  if (no_better) GoWithoutModel();
}

void LanguageModelWorker::GoWithoutModel() {
  observer_.OnState({});
  queue_.Pass(options_.step_loop.worker);
  next_try_ = clock_.Now() + kTryAgainAfter;
}

absl::Status LanguageModelWorker::Build() {
  LS_ASSIGN_OR_RETURN(model_, prototype_.Replicate(options_.threads));
  LS_ASSIGN_OR_RETURN(loop_, StepLoop::Create(*model_, queue_, clock_, observer_, options_.step_loop));
  return absl::OkStatus();
}

bool LanguageModelWorker::Rebuild() {
  const absl::Time now = clock_.Now();
  if (now >= next_try_) {
    const absl::Status built = Build();
    observer_.OnWorkerRebuilt(built);
    if (built.ok()) return true;
    model_.reset();
    GoWithoutModel();
  }
  std::vector<std::unique_ptr<Job>> ended = end_now_ ? queue_.TakeAll() : queue_.TakeAbandoned(now);
  for (const std::unique_ptr<Job>& job : ended) {
    const absl::Status abandoned = job->WhyAbandoned(now);
    queue_.Settle(*job, now);
    job->GiveBack();
    job->Finish(abandoned.ok() ? Stopping() : abandoned, now);
  }
  return false;
}

void LanguageModelWorker::RunTasks() {
  std::unique_lock lock(mutex_);
  while (!tasks_.empty()) {
    const CacheTask task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task(ended_ || loop_ == nullptr ? nullptr : &loop_->cache());
    lock.lock();
  }
}

}  // namespace longshort
