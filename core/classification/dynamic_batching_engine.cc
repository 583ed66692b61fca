#include "core/classification/dynamic_batching_engine.h"

#include <algorithm>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/schedule/idle_time.h"

namespace longshort {
namespace {

class DeafObserver final : public ClassifierEngineObserver {
 public:
  void OnPrepared(absl::Duration) override {}
  void OnQueued(absl::Duration) override {}
  void OnBatch(const BatchReport&) override {}
  void OnFailure(const absl::Status&) override {}
  void OnWorkerRebuilt(const absl::Status&) override {}
  void OnEnded(const absl::Status&) override {}
  void OnState(const ClassifierEngineState&) override {}
};

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace

absl::StatusOr<std::unique_ptr<DynamicBatchingEngine>> DynamicBatchingEngine::Create(
    std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
    std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options) {
  LS_RETURN_IF_ERROR(ItemQueue::Check(options.items));
  if (options.workers.empty()) return absl::InvalidArgumentError("workers is 0, must be at least 1");
  if (observer == nullptr) observer = std::make_unique<DeafObserver>();
  std::unique_ptr<DynamicBatchingEngine> engine(
      new DynamicBatchingEngine(std::move(classifier), std::move(pool), std::move(observer), clock, options));
  for (Worker& worker : engine->workers_) LS_RETURN_IF_ERROR(engine->Build(worker));
  for (Worker& worker : engine->workers_) {
    try {
      std::lock_guard lock(engine->mutex_);
      worker.thread = std::thread(&DynamicBatchingEngine::Work, engine.get(), std::ref(worker));
      ++engine->working_;
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(absl::StrCat("cannot start a worker's thread: ", error.what()));
    }
  }
  return engine;
}

DynamicBatchingEngine::DynamicBatchingEngine(std::unique_ptr<Classifier> classifier,
                                             std::shared_ptr<PreparationPool> pool,
                                             std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock,
                                             const Options& options)
    : classifier_(std::move(classifier)),
      pool_(std::move(pool)),
      observer_(std::move(observer)),
      clock_(clock),
      most_prepared_ahead_(2 * static_cast<int64_t>(options.workers.size()) * options.items.batches.max_batch_size),
      owner_(pool_->NewOwner()),
      items_(options.items, options.workers),
      trials_(static_cast<int>(options.workers.size())),
      workers_(options.workers.size()) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].number = static_cast<int>(i);
    workers_[i].device = options.workers[i];
  }
}

DynamicBatchingEngine::~DynamicBatchingEngine() {
  Drain(absl::InfinitePast());
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

absl::Status DynamicBatchingEngine::Classify(ClassificationRequest request,
                                             std::shared_ptr<ClassificationListener> listener) {
  const absl::Time now = clock_.Now();
  auto job = std::make_unique<ClassificationJob>(std::move(request), std::move(listener), now);
  {
    std::lock_guard lock(mutex_);
    if (closed_) return absl::UnavailableError("the server is stopping and takes no more requests");
    LS_RETURN_IF_ERROR(items_.Admit(std::move(job), now));
    observer_->OnState(items_.state());
    SchedulePreparations();
  }
  changed_.notify_all();  // who wakes finds the mutex free
  return absl::OkStatus();
}

ClassifierEngineState DynamicBatchingEngine::state() const {
  std::lock_guard lock(mutex_);
  return items_.state();
}

void DynamicBatchingEngine::Drain(absl::Time deadline) {
  const auto ended = [this] { return working_ == 0; };
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  if (deadline != absl::InfiniteFuture()) {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(deadline - clock_.Now()), ended);
    end_now_ = true;
    changed_.notify_all();
  }
  changed_.wait(lock, ended);
}

void DynamicBatchingEngine::SchedulePreparations() {
  while (tasks_waiting_ < items_.unprepared() &&
         tasks_waiting_ + items_.preparing() + items_.prepared() < most_prepared_ahead_) {
    ++tasks_;
    ++tasks_waiting_;
    pool_->Submit(owner_, [this] { return PrepareNext(); });
  }
}

absl::Duration DynamicBatchingEngine::PrepareNext() {
  absl::Duration preparation;
  std::unique_lock lock(mutex_);
  --tasks_waiting_;
  if (std::unique_ptr<ClassificationJob> job = items_.TakeUnprepared(); job != nullptr) {
    const bool stopping = end_now_;
    lock.unlock();
    const absl::Time begin = clock_.Now();
    const absl::Status status = stopping ? Stopping() : Prepare(*job);
    preparation = clock_.Now() - begin;
    lock.lock();
    if (status.ok()) {
      items_.AddPrepared(std::move(job), preparation);
    } else {
      items_.DropUnprepared(*job, preparation);
      observer_->OnState(items_.state());
      lock.unlock();
      FailItem(*job, status, *observer_);  // who hears it may send the next
      job.reset();
      lock.lock();
    }
  }
  --tasks_;
  SchedulePreparations();
  // Under the lock: right after, the engine may be gone.
  changed_.notify_all();
  return preparation;
}

absl::Status DynamicBatchingEngine::Prepare(ClassificationJob& job) {
  const absl::Time begin = clock_.Now();
  LS_RETURN_IF_ERROR(job.WhyAbandoned(begin));
  absl::Status status = job.Prepare();
  const absl::Time end = clock_.Now();
  job.SetPrepared(end);
  observer_->OnPrepared(end - begin);
  return status;
}

void DynamicBatchingEngine::Work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    WaitForRound(worker, lock);
    if (closed_ && NothingLeft()) break;
    RunRound(worker, lock);
  }
  --working_;
  changed_.notify_all();
}

absl::Status DynamicBatchingEngine::Build(Worker& worker) {
  LS_ASSIGN_OR_RETURN(worker.classifier, classifier_->Replicate(worker.device));
  worker.runner = std::make_unique<BatchRunner>(*worker.classifier, *observer_, clock_);
  return absl::OkStatus();
}

void DynamicBatchingEngine::Rebuild(Worker& worker) {
  const absl::Time now = clock_.Now();
  if (now < worker.replacement.next_try()) return;
  const absl::Status built = Build(worker);
  observer_->OnWorkerRebuilt(built);
  if (!built.ok()) worker.replacement.OnNoneToBeHad(now);
}

void DynamicBatchingEngine::WaitForRound(Worker& worker, std::unique_lock<std::mutex>& lock) {
  while (true) {
    const bool can_run = worker.runner != nullptr;
    const absl::Time due =
        can_run ? items_.BatchDueAt(trials_.IsOnTrial(worker.number)) : worker.replacement.next_try();
    if (closed_ && (NothingLeft() || (can_run && due < absl::InfiniteFuture()))) return;
    if (end_now_ && items_.unprepared() + items_.prepared() > 0) return;
    const absl::Time now = clock_.Now();
    if (due <= now) return;
    if (due == absl::InfiniteFuture()) {
      WaitForWork(worker, lock);
    } else {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(due - now));
    }
  }
}

void DynamicBatchingEngine::WaitForWork(Worker& worker, std::unique_lock<std::mutex>& lock) {
  if (worker.resting) return changed_.wait(lock);
  if (changed_.wait_for(lock, absl::ToChronoNanoseconds(kIdleTimeBeforeRest)) == std::cv_status::no_timeout) return;
  worker.resting = true;
  lock.unlock();
  worker.classifier->Rest();
  lock.lock();
}

void DynamicBatchingEngine::RunRound(Worker& worker, std::unique_lock<std::mutex>& lock) {
  const absl::Time now = clock_.Now();
  const bool stopping = end_now_;
  ClassificationJobs ended = stopping ? items_.TakeAll() : items_.TakeAbandoned(now);
  BatchFormer::Batch batch;
  if (worker.runner != nullptr) {
    batch = items_.TakeBatch(now, {.worker = worker.number, .on_trial = trials_.IsOnTrial(worker.number)});
  }
  observer_->OnState(items_.state());
  worker.resting &= batch.jobs.empty();
  const bool runs = !batch.jobs.empty();
  running_ += runs ? 1 : 0;
  SchedulePreparations();
  lock.unlock();
  for (const auto& job : ended) FailItem(*job, stopping ? Stopping() : job->WhyAbandoned(now), *observer_);
  for (const auto& [job, why] : batch.hopeless) FailItem(*job, why, *observer_);
  ended.clear();
  batch.hopeless.clear();
  if (runs) RunBatch(worker, std::move(batch.jobs));
  if (worker.runner == nullptr) Rebuild(worker);
  lock.lock();
  running_ -= runs ? 1 : 0;
  if (closed_ && NothingLeft()) changed_.notify_all();
}

void DynamicBatchingEngine::RunBatch(Worker& worker, ClassificationJobs batch) {
  const absl::Status run = worker.runner->Run(batch);
  bool given_up = false;
  {
    std::lock_guard lock(mutex_);
    items_.Settle(worker.number, batch, worker.runner->last_run(), !run.ok(), clock_.Now());
    given_up = Judge(worker, run);
    if (items_.prepared() > 0) changed_.notify_all();  // they may be of clients that had as much running as they may
  }
  if (run.ok()) return;
  observer_->OnFailure(run);
  if (given_up) {
    worker.runner.reset();
    worker.classifier.reset();
  }
  Recover(std::move(batch), run);
}

bool DynamicBatchingEngine::Judge(Worker& worker, const absl::Status& run) {
  ModelHealth& health = worker.runner->health();
  if (run.ok()) {
    health.OnSuccess();
    trials_.OnModelPassed(worker.number);
    return false;
  }
  const bool on_trial = trials_.IsOnTrial(worker.number);
  health.OnFailure(on_trial);
  if (!health.broken()) return false;
  worker.replacement.OnModelGivenUp(on_trial, clock_.Now());
  trials_.OnModelGivenUp(worker.number);
  return true;
}

void DynamicBatchingEngine::Recover(ClassificationJobs batch, const absl::Status& failure) {
  ClassificationJobs hopeless;
  {
    std::lock_guard lock(mutex_);
    for (std::unique_ptr<ClassificationJob>& job : batch) {
      job->failures.OnFailure(/*alone=*/batch.size() == 1);
      if (job->failures.hopeless()) {
        hopeless.push_back(std::move(job));
      } else {
        items_.AddAgain(std::move(job));
      }
    }
    observer_->OnState(items_.state());
    changed_.notify_all();
  }
  for (const auto& job : hopeless) FailItem(*job, failure, *observer_);
}

}  // namespace longshort
