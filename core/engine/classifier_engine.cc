#include "core/engine/classifier_engine.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
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

absl::Status CheckAtLeastOne(const char* name, int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ", must be at least 1"));
}

absl::Status CheckOptions(const ClassifierEngine::Options& options) {
  LS_RETURN_IF_ERROR(CheckAtLeastOne("max_waiting_items", options.max_waiting_items));
  LS_RETURN_IF_ERROR(CheckAtLeastOne("max_waiting_bytes", options.max_waiting_bytes));
  LS_RETURN_IF_ERROR(CheckAtLeastOne("max_batch_size", options.batches.max_batch_size));
  return CheckAtLeastOne("max_batch_tokens", options.batches.max_batch_tokens);
}

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

// Errors: INTERNAL, whatever went wrong: the items were checked before.
absl::StatusOr<ClassifierResult> Run(Classifier& classifier, const ClassificationJobs& batch) {
  std::vector<const ClassifierItem*> items;
  for (const std::unique_ptr<ClassificationJob>& job : batch) items.push_back(&job->item());
  try {
    absl::StatusOr<ClassifierResult> result = classifier.Classify(items);
    if (!result.ok()) return absl::InternalError(absl::StrCat("the model's batch failed: ", result.status().message()));
    if (static_cast<int64_t>(result->logits.size()) == static_cast<int64_t>(items.size()) * classifier.info().classes) {
      return result;
    }
    return absl::InternalError("the model's batch returned logits of another size than was asked for");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the model's batch failed: ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClassifierEngine>> ClassifierEngine::Create(
    std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
    std::unique_ptr<ClassificationObserver> observer, const Clock& clock, const Options& options) {
  LS_RETURN_IF_ERROR(CheckOptions(options));
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
      options_(options),
      batches_(options.batches) {}

ClassifierEngine::~ClassifierEngine() {
  if (!worker_.joinable()) return;
  Drain(absl::InfinitePast());
  worker_.join();
}

absl::Status ClassifierEngine::Classify(ClassificationRequest request,
                                        std::shared_ptr<ClassificationListener> listener) {
  auto job = std::make_unique<ClassificationJob>(std::move(request), std::move(listener), clock_.Now());
  std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("the server is stopping and takes no more requests");
  if (state_.waiting_items >= options_.max_waiting_items) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue is full: ", state_.waiting_items,
                                                     " items wait, the limit is ", options_.max_waiting_items));
  }
  if (state_.waiting_items > 0 && state_.waiting_bytes + job->bytes() > options_.max_waiting_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the items that wait hold ", state_.waiting_bytes,
                                                     " bytes and this one has ", job->bytes(),
                                                     "; together they may hold ", options_.max_waiting_bytes));
  }
  ++state_.waiting_items;
  state_.waiting_bytes += job->bytes();
  if (job->prepared()) {
    batches_.Add(std::move(job));
  } else {
    unprepared_.push_back(std::move(job));
    SchedulePreparations();
  }
  changed_.notify_all();
  return absl::OkStatus();
}

ClassificationEngineState ClassifierEngine::state() const {
  std::lock_guard lock(mutex_);
  return state_;
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
  const int64_t most_ahead = 2 * options_.batches.max_batch_size;
  while (tasks_waiting_ < static_cast<int64_t>(unprepared_.size()) &&
         tasks_waiting_ + preparing_ + batches_.size() < most_ahead) {
    ++tasks_waiting_;
    pool_->Submit([this] { PrepareFirst(); });
  }
}

void ClassifierEngine::Leave(const ClassificationJobs& jobs) {
  state_.waiting_items -= static_cast<int64_t>(jobs.size());
  for (const std::unique_ptr<ClassificationJob>& job : jobs) state_.waiting_bytes -= job->bytes();
}

void ClassifierEngine::PrepareFirst() {
  std::unique_lock lock(mutex_);
  --tasks_waiting_;
  if (!unprepared_.empty()) {
    ++preparing_;
    std::unique_ptr<ClassificationJob> job = std::move(unprepared_.front());
    unprepared_.pop_front();
    const int64_t bytes = job->bytes();
    const bool stopping = end_now_;
    lock.unlock();
    if (stopping) {
      Fail(*std::exchange(job, nullptr), Stopping());
    } else {
      job = Prepared(std::move(job));
    }
    lock.lock();
    --preparing_;
    if (job != nullptr) {
      batches_.Add(std::move(job));
    } else {
      --state_.waiting_items;
      state_.waiting_bytes -= bytes;
    }
  }
  SchedulePreparations();
  // Under the lock: right after, the engine may be gone.
  changed_.notify_all();
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
  Fail(*job, status);
  return nullptr;
}

void ClassifierEngine::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return batches_.size() > 0 || (end_now_ && !unprepared_.empty()) || (closed_ && NothingLeft());
    });
    if (closed_ && NothingLeft()) break;
    RunRound(lock);
  }
  worker_ended_ = true;
  changed_.notify_all();
}

void ClassifierEngine::RunRound(std::unique_lock<std::mutex>& lock) {
  const absl::Time now = clock_.Now();
  const bool stopping = end_now_;
  ClassificationJobs ended = stopping ? batches_.TakeAll() : batches_.TakeAbandoned(now);
  ClassificationJobs ended_early = stopping ? TakeAll(unprepared_) : TakeAbandoned(unprepared_, now);
  std::move(ended_early.begin(), ended_early.end(), std::back_inserter(ended));
  ClassificationJobs batch = batches_.TakeBatch();
  Leave(ended);
  Leave(batch);
  SchedulePreparations();
  lock.unlock();
  for (const auto& job : ended) Fail(*job, stopping ? Stopping() : job->WhyAbandoned(now));
  ended.clear();
  if (!batch.empty()) RunBatch(batch);
  batch.clear();
  lock.lock();
}

void ClassifierEngine::RunBatch(const ClassificationJobs& batch) {
  const absl::Time begin = clock_.Now();
  BatchReport report;
  report.items = static_cast<int64_t>(batch.size());
  for (const std::unique_ptr<ClassificationJob>& job : batch) {
    observer_->OnQueued(job->WaitedAsItem(begin));
    report.tokens += TokensOf(job->item());
  }
  const absl::StatusOr<ClassifierResult> result = Run(*classifier_, batch);
  const absl::Time end = clock_.Now();
  report.run = end - begin;
  if (result.ok()) report.multiply_adds = result->counts.multiply_adds;
  observer_->OnBatch(report);
  const auto classes = static_cast<size_t>(classifier_->info().classes);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!result.ok()) {
      Fail(*batch[i], result.status());
      continue;
    }
    const absl::Span<const float> logits = result->logits.subspan(i * classes, classes);
    if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
      Fail(*batch[i], absl::InternalError("the model gave a class a logit that is not finite"));
      continue;
    }
    observer_->OnEnded(absl::OkStatus());
    batch[i]->Finish(std::vector<float>(logits.begin(), logits.end()), begin, end);
  }
}

void ClassifierEngine::Fail(ClassificationJob& job, const absl::Status& status) {
  observer_->OnEnded(status);
  job.Fail(status);
}

}  // namespace longshort
