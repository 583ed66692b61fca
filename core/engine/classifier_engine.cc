#include "core/engine/classifier_engine.h"

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

class DeafObserver final : public ClassificationObserver {
 public:
  void OnPrepared(absl::Duration) override {}
  void OnQueued(absl::Duration) override {}
  void OnBatch(const BatchReport&) override {}
  void OnEnded(const absl::Status&) override {}
};

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace

absl::StatusOr<std::unique_ptr<ClassifierEngine>> ClassifierEngine::Create(
    std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
    std::unique_ptr<ClassificationObserver> observer, const Clock& clock, const Options& options) {
  LS_RETURN_IF_ERROR(ItemQueue::Check(options));
  if (observer == nullptr) observer = std::make_unique<DeafObserver>();
  std::unique_ptr<ClassifierEngine> engine(
      new ClassifierEngine(std::move(classifier), std::move(pool), std::move(observer), clock, options));
  try {
    engine->worker_ = std::thread(&ClassifierEngine::Work, engine.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the engine's thread: ", error.what()));
  }
  return engine;
}

ClassifierEngine::ClassifierEngine(std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
                                   std::unique_ptr<ClassificationObserver> observer, const Clock& clock,
                                   const Options& options)
    : classifier_(std::move(classifier)),
      pool_(std::move(pool)),
      observer_(std::move(observer)),
      clock_(clock),
      most_prepared_ahead_(2 * options.batches.max_batch_size),
      owner_(pool_->NewOwner()),
      runner_(*classifier_, *observer_, clock),
      items_(options) {}

ClassifierEngine::~ClassifierEngine() {
  if (!worker_.joinable()) return;
  Drain(absl::InfinitePast());
  worker_.join();
}

absl::Status ClassifierEngine::Classify(ClassificationRequest request,
                                        std::shared_ptr<ClassificationListener> listener) {
  const absl::Time now = clock_.Now();
  auto job = std::make_unique<ClassificationJob>(std::move(request), std::move(listener), now);
  std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("the server is stopping and takes no more requests");
  LS_RETURN_IF_ERROR(items_.Admit(std::move(job), now));
  SchedulePreparations();
  changed_.notify_all();
  return absl::OkStatus();
}

ClassificationEngineState ClassifierEngine::state() const {
  std::lock_guard lock(mutex_);
  return items_.state();
}

void ClassifierEngine::Drain(absl::Time deadline) {
  const auto ended = [this] { return worker_ended_; };
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  if (deadline != absl::InfiniteFuture()) {
    if (deadline > clock_.Now()) changed_.wait_until(lock, absl::ToChronoTime(deadline), ended);
    end_now_ = true;
    changed_.notify_all();
  }
  changed_.wait(lock, ended);
}

void ClassifierEngine::SchedulePreparations() {
  while (tasks_waiting_ < items_.unprepared() &&
         tasks_waiting_ + items_.preparing() + items_.prepared() < most_prepared_ahead_) {
    ++tasks_waiting_;
    pool_->Submit(owner_, [this] { return PrepareNext(); });
  }
}

absl::Duration ClassifierEngine::PrepareNext() {
  absl::Duration preparation;
  std::unique_lock lock(mutex_);
  --tasks_waiting_;
  if (std::unique_ptr<ClassificationJob> job = items_.TakeUnprepared(); job != nullptr) {
    const Ticket ticket = job->ticket;
    const int64_t bytes = job->bytes();
    const bool stopping = end_now_;
    lock.unlock();
    const absl::Time begin = clock_.Now();
    if (stopping) {
      runner_.Fail(*std::exchange(job, nullptr), Stopping());
    } else {
      job = Prepared(std::move(job));
    }
    const absl::Time end = clock_.Now();
    preparation = end - begin;
    lock.lock();
    if (job != nullptr) {
      items_.AddPrepared(std::move(job), preparation, end);
    } else {
      items_.DropUnprepared(ticket, bytes, preparation);
    }
  }
  SchedulePreparations();
  // Under the lock: right after, the engine may be gone.
  changed_.notify_all();
  return preparation;
}

std::unique_ptr<ClassificationJob> ClassifierEngine::Prepared(std::unique_ptr<ClassificationJob> job) {
  const absl::Time begin = clock_.Now();
  absl::Status status = job->WhyAbandoned(begin);
  if (status.ok()) {
    status = job->Prepare();
    const absl::Time end = clock_.Now();
    job->SetPrepared(end);
    observer_->OnPrepared(end - begin);
  }
  if (status.ok()) return job;
  runner_.Fail(*job, status);
  return nullptr;
}

void ClassifierEngine::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    WaitForRound(lock);
    if (closed_ && NothingLeft()) break;
    RunRound(lock);
  }
  worker_ended_ = true;
  changed_.notify_all();
}

void ClassifierEngine::WaitForRound(std::unique_lock<std::mutex>& lock) {
  while (true) {
    if (closed_ && (NothingLeft() || items_.prepared() > 0)) return;
    if (end_now_ && items_.unprepared() > 0) return;
    const absl::Time due = items_.BatchDueAt();
    const absl::Time now = clock_.Now();
    if (due <= now) return;
    if (due == absl::InfiniteFuture()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, std::chrono::system_clock::now() + absl::ToChronoNanoseconds(due - now));
    }
  }
}

void ClassifierEngine::RunRound(std::unique_lock<std::mutex>& lock) {
  const absl::Time now = clock_.Now();
  const bool stopping = end_now_;
  ClassificationJobs ended = stopping ? items_.TakeAll() : items_.TakeAbandoned(now);
  BatchFormer::Batch batch = items_.TakeBatch(now);
  SchedulePreparations();
  lock.unlock();
  for (const auto& job : ended) runner_.Fail(*job, stopping ? Stopping() : job->WhyAbandoned(now));
  for (const auto& [job, why] : batch.hopeless) runner_.Fail(*job, why);
  ended.clear();
  batch.hopeless.clear();
  if (!batch.jobs.empty()) RunBatch(batch.jobs);
  batch.jobs.clear();
  lock.lock();
}

void ClassifierEngine::RunBatch(const ClassificationJobs& batch) {
  const absl::StatusOr<absl::Duration> run = runner_.Run(batch);
  std::lock_guard lock(mutex_);
  items_.Settle(batch, run.ok() ? std::make_optional(*run) : std::nullopt, clock_.Now());
}

}  // namespace longshort
