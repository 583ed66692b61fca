#include "core/generation/language_model_worker.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/schedule/idle_time.h"

namespace longshort {
namespace {

// Nobody tells when there may be a model again.
constexpr absl::Duration kLookForModel = absl::Seconds(1);

// A session may come to be idle, or its time be made shorter, without a worker's doing: so often one looks.
constexpr absl::Duration kLookForEndedSessions = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<LanguageModelWorker>> LanguageModelWorker::Start(
    const LanguageModel& model, RequestQueue& queue, SessionStore& sessions, const Clock& clock,
    LanguageModelEngineObserver& observer, const std::atomic<bool>& end_now, const Options& options) {
  auto worker = absl::WrapUnique(new LanguageModelWorker(model, queue, sessions, clock, observer, end_now, options));
  LS_RETURN_IF_ERROR(worker->replica_.Build());
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
    if (!takes_tasks_) {
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
    if (replica_.RunRound(end_now_)) {
      idle_since_ = absl::InfiniteFuture();
      if (clock_.Now() >= look_for_ended_sessions_) EndExpiredSessions();
      continue;
    }
    if (queue_.over()) break;
    Sleep(seen);
  }
  {
    std::lock_guard lock(mutex_);
    takes_tasks_ = false;
  }
  RunTasks();
  std::lock_guard lock(mutex_);
  ended_ = true;  // what the tasks have may be gone right after
  changed_.notify_all();
}

void LanguageModelWorker::Sleep(int64_t changes_seen) {
  const absl::Time next_session_ends = EndExpiredSessions();
  const absl::Time now = clock_.Now();
  idle_since_ = std::min(idle_since_, now);
  const absl::Duration longest = !replica_.has_model() ? kLookForModel
                                 : resting_            ? kLookForEndedSessions
                                                       : kIdleTimeBeforeRest;
  queue_.WaitForChange(changes_seen, std::clamp(next_session_ends - now, absl::ZeroDuration(), longest));
  if (queue_.changes() != changes_seen) {
    idle_since_ = absl::InfiniteFuture();
    resting_ = false;
  } else if (!resting_ && replica_.has_model() && clock_.Now() - idle_since_ >= kIdleTimeBeforeRest) {
    resting_ = true;
    replica_.Rest();
  }
}

absl::Time LanguageModelWorker::EndExpiredSessions() {
  const absl::Time next_ends = sessions_.EndExpired();  // their pages' tasks are changes
  look_for_ended_sessions_ = std::min(next_ends, clock_.Now() + kLookForEndedSessions);
  return next_ends;
}

void LanguageModelWorker::RunTasks() {
  std::unique_lock lock(mutex_);
  while (!tasks_.empty()) {
    CacheTask task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task(takes_tasks_ ? replica_.cache() : nullptr);
    task = nullptr;  // what it holds may be the last of much else
    lock.lock();
  }
}

}  // namespace longshort
