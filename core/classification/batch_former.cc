#include "core/classification/batch_former.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/request_context.h"
#include "core/schedule/refusal.h"

namespace longshort::core {

ClassificationJob::ClassificationJob(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener,
                                     absl::Time submitted)
    : context_(std::move(request.context)),
      output_(request.output),
      bytes_(request.bytes),
      preparation_work_(request.preparation_work),
      work_until_prepared_(request.work_until_prepared),
      submitted_(submitted),
      listener_(std::move(listener)) {
  if (auto* item = std::get_if<models::ClassifierItem>(&request.item); item != nullptr) {
    item_ = std::move(*item);
    prepared_at_ = submitted;
  } else {
    preparation_ = std::get<ItemPreparation>(std::move(request.item));
  }
}

absl::Status ClassificationJob::Prepare() {
  const ItemPreparation preparation = std::exchange(preparation_, nullptr);  // frees its input at the end
  LS_ASSIGN_OR_RETURN(item_, PrepareItem(preparation));
  return absl::OkStatus();
}

absl::Status ClassificationJob::CheckNotAbandoned(absl::Time now) const {
  return longshort::core::CheckNotAbandoned(context_, now, /*started=*/false);
}

void ClassificationJob::Fail(const absl::Status& status) { listener_->OnFinished(status); }

void ClassificationJob::Finish(std::vector<float> row, absl::Time begin, absl::Time end) {
  listener_->OnFinished(ItemResult{.row = std::move(row),
                                   .timings = {.submitted = submitted_,
                                               .preparation = prepared_at_ - submitted_,
                                               .queue = begin - prepared_at_,
                                               .run = end - begin}});
}

void FailItem(ClassificationJob& job, const absl::Status& status, ClassifierEngineObserver& observer) {
  observer.OnEnded(status);
  job.Fail(status);
}

namespace {

// The shape of an item. Images are grouped by size and counted; token sequences of all lengths are one kind, measured
// in tokens. Each output is a kind of its own.
RunShape ShapeOf(const ClassificationJob& job) {
  const int64_t output = static_cast<int64_t>(job.output()) << 60;
  if (const auto* image = std::get_if<models::ImageItem>(&job.item()); image != nullptr) {
    return {.kind = output + (image->height << 32) + image->width, .units = 1};
  }
  return {.kind = output, .units = std::max<int64_t>(1, TokensOf(job.item()))};
}

// Twice the number of full batches in a full queue of the default size. So even with clients that send many kinds,
// items are rarely skipped this often.
constexpr int64_t kMaxSkips = 64;

// A batch while it is formed: whether one more item can join, and where the batch ends.
class BatchBuilder {
 public:
  // `number`: the batch's number, from 1. `begin`: when it can begin to run.
  BatchBuilder(const BatchFormer::Options& options, const RunTimeEstimator& estimator, const ClassificationJob& leader,
               int64_t number, absl::Time begin)
      : options_(options),
        estimator_(estimator),
        number_(number),
        begin_(begin),
        shape_(ShapeOf(leader)),
        deadline_(leader.context().deadline),
        ended_(leader.failures.any()) {}

  // Items of another kind are skipped, but not forever. The first item of this kind that does not fit ends the batch.
  bool Admits(ClassificationJob& job) {
    const RunShape more = ShapeOf(job);
    const bool is_of_another = more.kind != shape_.kind;
    if (is_of_another && job.first_skipped_by == 0) job.first_skipped_by = number_;
    ended_ = job.failures.any() || (is_of_another && number_ - job.first_skipped_by >= kMaxSkips);
    if (is_of_another || ended_) return false;
    const RunShape grown = {.kind = shape_.kind, .units = shape_.units + more.units};
    const absl::Time deadline = std::min(deadline_, job.context().deadline);
    ended_ = size_ == options_.max_batch_size ||
             (TokensOf(job.item()) > 0 && grown.units > options_.max_batch_tokens) ||
             (MeetsDeadline(shape_, deadline) && !MeetsDeadline(grown, deadline));
    return !ended_;
  }
  bool ended() const { return ended_; }
  void Add(const ClassificationJob& job) {
    shape_.units += ShapeOf(job).units;
    deadline_ = std::min(deadline_, job.context().deadline);
    ++size_;
  }
  absl::Time PredictedEnd() const {
    const auto run = estimator_.Of(shape_, begin_);
    return run.has_value() ? begin_ + run->typical : begin_;
  }

 private:
  bool MeetsDeadline(const RunShape& shape, absl::Time deadline) const {
    if (deadline == absl::InfiniteFuture()) return true;
    const auto run = estimator_.Of(shape, begin_);
    return !run.has_value() || begin_ + run->typical <= deadline;
  }

  const BatchFormer::Options& options_;
  const RunTimeEstimator& estimator_;
  const int64_t number_;
  const absl::Time begin_;
  RunShape shape_;
  absl::Time deadline_;  // of the most urgent item
  int64_t size_ = 1;
  bool ended_;
};

auto LeaderFor(bool on_probation) {
  return [on_probation](const std::unique_ptr<ClassificationJob>& job) {
    return !on_probation || !job->failures.on_last_try();
  };
}

absl::Status CheckAtLeastOne(const char* name, int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ", must be at least 1"));
}

}  // namespace

int64_t TokensOf(const models::ClassifierItem& item) {
  const auto* documents = std::get_if<models::TokenItem>(&item);
  if (documents == nullptr) return 0;
  int64_t tokens = 0;
  for (const std::vector<int32_t>& document : documents->documents) tokens += static_cast<int64_t>(document.size());
  return tokens;
}

absl::Status BatchFormer::Check(const Options& options) {
  LS_RETURN_IF_ERROR(CheckAtLeastOne("max_batch_size", options.max_batch_size));
  LS_RETURN_IF_ERROR(CheckAtLeastOne("max_batch_tokens", options.max_batch_tokens));
  if (options.max_queue_delay < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("max_queue_delay must not be negative");
  }
  return WorkOrder::Check(options.order);
}

void BatchFormer::Add(std::unique_ptr<ClassificationJob> job) {
  job->attributes.cost = CostOf(*job);
  WorkAttributes attributes = job->attributes;
  queue_.Add(std::move(attributes), std::move(job));
}

absl::Time BatchFormer::DueAt(bool on_probation) {
  const auto may_lead = LeaderFor(on_probation);
  if (queue_.First(may_lead) == nullptr) return absl::InfiniteFuture();
  if (options_.max_queue_delay == absl::ZeroDuration() || HasFullBatch(on_probation)) return absl::InfinitePast();
  absl::Time due = absl::InfiniteFuture();
  queue_.ForEachRunnable([&](const std::unique_ptr<ClassificationJob>& job) {
    if (!may_lead(job)) return;
    // If it has a deadline, half of its time is left for running, because it may take longer than predicted.
    const absl::Duration spare = job->context().deadline - queue_.load().waiting_cost - job->prepared_at();
    due = std::min(due, job->prepared_at() + std::min(options_.max_queue_delay, spare / 2));
  });
  return due;
}

bool BatchFormer::HasFullBatch(bool on_probation) const {
  const auto may_lead = LeaderFor(on_probation);
  int64_t items = 0, tokens = 0;
  queue_.ForEachRunnable([&](const std::unique_ptr<ClassificationJob>& job) {
    if (!may_lead(job)) return;
    ++items;
    tokens += TokensOf(job->item());
  });
  return items >= options_.max_batch_size || tokens >= options_.max_batch_tokens;
}

BatchFormer::Batch BatchFormer::TakeBatch(absl::Time now, const BatchTaker& taker) {
  Batch batch;
  std::unique_ptr<ClassificationJob> leader = TakeLeader(now, taker.on_probation, batch.too_late);
  if (leader == nullptr) return batch;
  BatchBuilder builder(options_, estimates_.Of(taker.worker), *leader, ++batches_, std::max(now, taker.busy_until));
  batch.jobs.push_back(std::move(leader));
  while (auto taken = queue_.TakeFirstToJoin([&](const std::unique_ptr<ClassificationJob>& job) {
    return !taker.on_probation && !builder.ended() && CheckDeadlineCanBeMet(*job, now).ok() && builder.Admits(*job);
  })) {
    builder.Add(*taken->item);
    taken->item->attributes = std::move(taken->attributes);
    batch.jobs.push_back(std::move(taken->item));
  }
  batch.predicted_end = builder.PredictedEnd();
  ++running_;
  return batch;
}

std::unique_ptr<ClassificationJob> BatchFormer::TakeLeader(absl::Time now, bool on_probation,
                                                           std::vector<TooLate>& too_late) {
  while (std::unique_ptr<ClassificationJob> job = TakeFirst(on_probation)) {
    absl::Status why = CheckDeadlineCanBeMet(*job, now);
    if (why.ok()) return job;
    // Complete at once, because its client may have reached its limit of running items.
    queue_.Complete(job->attributes, absl::ZeroDuration());
    too_late.push_back({std::move(job), std::move(why)});
  }
  if (too_late.empty()) return nullptr;
  Add(std::move(too_late.front().job));
  too_late.erase(too_late.begin());
  return TakeFirst(on_probation);
}

std::unique_ptr<ClassificationJob> BatchFormer::TakeFirst(bool on_probation) {
  auto taken = queue_.TakeFirst(LeaderFor(on_probation));
  if (!taken.has_value()) return nullptr;
  taken->item->attributes = std::move(taken->attributes);
  return std::move(taken->item);
}

absl::Duration BatchFormer::Complete(int worker, const ClassificationJobs& batch, absl::Duration run, bool failed,
                                     absl::Time now) {
  RunShape shape = {.kind = ShapeOf(*batch.front()).kind, .units = 0};
  for (const auto& job : batch) shape.units += ShapeOf(*job).units;
  if (!failed) Learn(worker, shape, run, now);
  const absl::Duration per_unit = estimates_.PartOfAll(worker, shape, run / shape.units);
  for (const auto& job : batch) queue_.Complete(job->attributes, per_unit * ShapeOf(*job).units);
  --running_;
  return estimates_.PartOfAll(worker, shape, run);
}

void BatchFormer::Learn(int worker, const RunShape& shape, absl::Duration run, absl::Time now) {
  const bool is_new = estimates_.PartOfRun(shape) == absl::ZeroDuration();
  estimates_.Of(worker).Learn(shape, run, now);
  if (!is_new) return;
  // Items queued before the first estimate had cost 0. Give them their cost, so that they count against the limit.
  queue_.SetCosts([this](const std::unique_ptr<ClassificationJob>& job) {
    return FairQueue<std::unique_ptr<ClassificationJob>>::Costs{CostOf(*job)};
  });
}

absl::Status BatchFormer::CheckDeadlineCanBeMet(const ClassificationJob& job, absl::Time now) const {
  if (job.context().deadline == absl::InfiniteFuture()) return absl::OkStatus();
  const auto alone = estimates_.Fastest(ShapeOf(job), now);
  if (!alone.has_value()) return absl::OkStatus();
  return CheckDeadline(*alone, job.context().deadline, now);
}

absl::Duration BatchFormer::CostOf(const ClassificationJob& job) const { return estimates_.PartOfRun(ShapeOf(job)); }

ClassificationJobs BatchFormer::TakeAbandoned(absl::Time now) {
  return queue_.RemoveIf(
      [now](const std::unique_ptr<ClassificationJob>& job) { return !job->CheckNotAbandoned(now).ok(); });
}

}  // namespace longshort::core
