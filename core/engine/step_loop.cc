#include "core/engine/step_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

bool Equal(const CachePages& a, const CachePages& b) {
  return a.window == b.window && a.segment == b.segment && a.open_chunk == b.open_chunk;
}

CachePages Times(const CachePages& pages, int64_t count) {
  return {.window = pages.window * count, .segment = pages.segment * count, .open_chunk = pages.open_chunk * count};
}

int64_t Bytes(const CachePages& pages, const CachePages& page_bytes) {
  return pages.window * page_bytes.window + pages.segment * page_bytes.segment +
         pages.open_chunk * page_bytes.open_chunk;
}

absl::Status CheckOptions(const StepLoop::Options& options) {
  if (options.max_streams < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_streams is ", options.max_streams, ", must be at least 1"));
  }
  if (options.max_rows_per_step < options.max_streams) {
    return absl::InvalidArgumentError(absl::StrCat("max_rows_per_step is ", options.max_rows_per_step,
                                                   ", must be at least max_streams (", options.max_streams, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLoop>> StepLoop::Create(LanguageModel& model, RequestQueue& queue,
                                                           const Clock& clock, EngineObserver& observer,
                                                           const Options& options) {
  LS_RETURN_IF_ERROR(CheckOptions(options));
  const CachePages per_sequence = PagesForSequence(model.info());
  if (!Equal(per_sequence, model.PagesPerSequence())) {
    return absl::InternalError("the model counts the pages of a sequence differently than core/cache");
  }
  const CachePages capacity = Times(per_sequence, options.max_streams);
  LS_RETURN_IF_ERROR(model.AllocateCache(capacity));
  return std::unique_ptr<StepLoop>(new StepLoop(model, queue, clock, observer, options, capacity));
}

StepLoop::StepLoop(LanguageModel& model, RequestQueue& queue, const Clock& clock, EngineObserver& observer,
                   const Options& options, const CachePages& capacity)
    : model_(model), queue_(queue), clock_(clock), observer_(observer), options_(options), pools_(capacity) {
  running_.reserve(options.max_streams);
  PublishState();
}

bool StepLoop::RunOnce() {
  EndAbandoned();
  Admit();
  if (!running_.empty()) Step();
  PublishState();
  TellEnded();
  return !running_.empty() || queue_.size() > 0;
}

void StepLoop::EndAll(const absl::Status& status) {
  EndRunning(status);
  for (std::unique_ptr<Job>& job : queue_.TakeAll()) ended_.push_back({std::move(job), status});
  PublishState();
  TellEnded();
}

EngineState StepLoop::state() const {
  std::lock_guard lock(state_mutex_);
  return state_;
}

void StepLoop::EndAbandoned() {
  const absl::Time now = clock_.Now();
  for (std::unique_ptr<Job>& job : queue_.TakeAbandoned(now)) {
    absl::Status why = job->WhyAbandoned(now);
    ended_.push_back({std::move(job), std::move(why)});
  }
  for (std::unique_ptr<Sequence>& sequence : running_) {
    absl::Status why = sequence->job().WhyAbandoned(now);
    if (!why.ok()) End(std::move(sequence), std::move(why));
  }
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
}

void StepLoop::Admit() {
  while (static_cast<int64_t>(running_.size()) < options_.max_streams) {
    std::unique_ptr<Job> job = queue_.TakeFirst();
    if (job == nullptr) return;
    const absl::Time now = clock_.Now();
    if (absl::Status why = job->WhyAbandoned(now); !why.ok()) {  // it came just now, too late
      ended_.push_back({std::move(job), std::move(why)});
      continue;
    }
    job->times.started = now;
    observer_.OnQueued(job->times.started - job->times.submitted);
    if (job->complete()) {  // a document of one token
      observer_.OnPrefilled(absl::ZeroDuration(), job->prompt_tokens());
      ended_.push_back({std::move(job), absl::OkStatus()});
      continue;
    }
    // The cache has room for max_streams sequences of any length.
    absl::StatusOr<SequencePages> pages = SequencePages::Acquire(pools_, model_.info(), job->MostTokens());
    if (!pages.ok()) {
      ended_.push_back({std::move(job), absl::InternalError(pages.status().message())});
      continue;
    }
    running_.push_back(std::make_unique<Sequence>(std::move(job), *std::move(pages), model_.info().segment_length));
  }
}

void StepLoop::PlanPieces() {
  pieces_.assign(running_.size(), 1);
  int64_t prefilling = 0;
  for (const auto& sequence : running_) prefilling += sequence->job().decoding() ? 0 : 1;
  int64_t rows_left = options_.max_rows_per_step - (static_cast<int64_t>(running_.size()) - prefilling);
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.job().decoding()) continue;
    const auto unread = static_cast<int64_t>(sequence.job().Unread().size());
    pieces_[i] = PieceWithin(rows_left / prefilling, sequence.position(), unread);
    rows_left -= pieces_[i];
    --prefilling;
  }
}

int64_t StepLoop::PieceWithin(int64_t share, int64_t position, int64_t unread) const {
  if (unread <= share) return unread;
  const int64_t chunk_size = model_.info().chunk_size;
  const int64_t last_chunk_end = (position + share) / chunk_size * chunk_size;
  return last_chunk_end > position ? last_chunk_end - position : share;
}

void StepLoop::Step() {
  PlanPieces();
  slices_.clear();
  int64_t rows = 0;
  int64_t logit_rows = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    slices_.push_back(running_[i]->NextSlice(pieces_[i]));
    rows += pieces_[i];
    logit_rows += slices_.back().logit_rows;
  }
  const absl::Time begin = clock_.Now();
  const absl::StatusOr<StepResult> result = model_.Step(slices_);
  observer_.OnStep(clock_.Now() - begin, rows);
  if (!result.ok()) {
    EndRunning(absl::InternalError(absl::StrCat("the model's step failed: ", result.status().message())));
  } else if (static_cast<int64_t>(result->logits.size()) != logit_rows * model_.info().vocabulary_size) {
    EndRunning(absl::InternalError("the model's step returned logits of another size than was asked for"));
  } else {
    Deliver(result->logits);
  }
}

void StepLoop::Deliver(absl::Span<const float> logits) {
  const absl::Time now = clock_.Now();
  for (size_t i = 0; i < running_.size(); ++i) {
    const int64_t count = slices_[i].logit_rows * model_.info().vocabulary_size;
    absl::Status status = running_[i]->OnRead(pieces_[i], logits.first(count), now);
    logits.remove_prefix(count);
    if (!status.ok() || running_[i]->job().complete()) End(std::move(running_[i]), std::move(status));
  }
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
}

void StepLoop::End(std::unique_ptr<Sequence> sequence, absl::Status status) {
  ended_.push_back({sequence->TakeJob(), std::move(status)});
}

void StepLoop::EndRunning(const absl::Status& status) {
  for (std::unique_ptr<Sequence>& sequence : running_) End(std::move(sequence), status);
  running_.clear();
}

void StepLoop::PublishState() {
  const CachePages page_bytes = model_.PageBytes();
  const EngineState state{.queued_requests = queue_.size(),
                          .active_streams = static_cast<int64_t>(running_.size()),
                          .cache_bytes_used = Bytes(pools_.used(), page_bytes),
                          .cache_bytes_free = Bytes(pools_.free(), page_bytes)};
  {
    std::lock_guard lock(state_mutex_);
    state_ = state;
  }
  observer_.OnState(state);
}

void StepLoop::TellEnded() {
  for (EndedJob& ended : ended_) ended.job->Finish(ended.status, clock_.Now());
  ended_.clear();
}

}  // namespace longshort
