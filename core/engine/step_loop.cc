#include "core/engine/step_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/cache/cache_capacity.h"
#include "core/cache/cache_pages.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

absl::Status CheckOptions(const StepLoop::Options& options) {
  if (options.max_streams < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_streams is ", options.max_streams, ", must be at least 1"));
  }
  return StepPlanner::Check(options.steps);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLoop>> StepLoop::Create(LanguageModel& model, RequestQueue& queue,
                                                           const Clock& clock, EngineObserver& observer,
                                                           const Options& options) {
  LS_RETURN_IF_ERROR(CheckOptions(options));
  CachePages capacity = PagesForStreams(model.info(), options.max_streams);
  if (options.cache_bytes != 0) {
    LS_ASSIGN_OR_RETURN(capacity,
                        PagesForBytes(model.info(), model.PageBytes(), options.cache_bytes, options.max_streams));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<PagedCache> cache, PagedCache::Create(model, capacity));
  return std::unique_ptr<StepLoop>(new StepLoop(model, queue, clock, observer, options, std::move(cache)));
}

StepLoop::StepLoop(LanguageModel& model, RequestQueue& queue, const Clock& clock, EngineObserver& observer,
                   const Options& options, std::unique_ptr<PagedCache> cache)
    : model_(model),
      queue_(queue),
      clock_(clock),
      observer_(observer),
      options_(options),
      cache_(std::move(cache)),
      planner_(options.steps, model.info().chunk_size) {
  running_.reserve(options.max_streams);
  PublishState();
}

bool StepLoop::RunOnce() {
  EndAbandoned();
  Admit();
  if (!running_.empty()) Step();
  PublishState();
  TellEnded();
  return !running_.empty() || next_ != nullptr || queue_.size() > 0;
}

void StepLoop::EndAll(const absl::Status& status) {
  EndRunning(status);
  if (next_ != nullptr) ended_.push_back({std::move(next_), status});
  for (std::unique_ptr<Job>& job : queue_.TakeAll()) ended_.push_back({std::move(job), status});
  PublishState();
  TellEnded();
}

EngineState StepLoop::state() const {
  const int64_t queued = queue_.size();
  std::lock_guard lock(state_mutex_);
  EngineState state = state_;
  state.queued_requests += queued;
  return state;
}

void StepLoop::EndAbandoned() {
  const absl::Time now = clock_.Now();
  for (std::unique_ptr<Job>& job : queue_.TakeAbandoned(now)) {
    absl::Status why = job->WhyAbandoned(now);
    ended_.push_back({std::move(job), std::move(why)});
  }
  if (next_ != nullptr) {
    absl::Status why = next_->WhyAbandoned(now);
    if (!why.ok()) ended_.push_back({std::move(next_), std::move(why)});
  }
  for (std::unique_ptr<Sequence>& sequence : running_) {
    absl::Status why = sequence->job().WhyAbandoned(now);
    if (!why.ok()) End(std::move(sequence), std::move(why));
  }
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
}

void StepLoop::Admit() {
  while (static_cast<int64_t>(running_.size()) < options_.max_streams && NextIsReady()) {
    if (!cache_->FitsNow(next_->MostTokens())) return;
    Start(std::move(next_));
  }
}

bool StepLoop::NextIsReady() {
  while (true) {
    if (next_ == nullptr) next_ = queue_.TakeFirst();
    if (next_ == nullptr) return false;
    absl::Status why = WhyNotStarted(*next_);
    if (why.ok() && !next_->complete()) return true;
    if (why.ok()) {  // a document of one token
      next_->times.started = clock_.Now();
      observer_.OnQueued(next_->times.started - next_->times.submitted);
      observer_.OnPrefilled(absl::ZeroDuration(), next_->prompt_tokens());
      if (next_->session.has_value()) next_->session->Commit({.tokens = next_->stream().all(), .parked = {}});
    }
    ended_.push_back({std::move(next_), std::move(why)});
  }
}

absl::Status StepLoop::WhyNotStarted(const Job& job) const {
  const absl::Time now = clock_.Now();
  LS_RETURN_IF_ERROR(job.WhyAbandoned(now));  // it may have come just now, too late
  if (job.complete()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(cache_->CheckFits(job.MostTokens()));
  return queue_.WhyHopeless(job, now);
}

void StepLoop::Start(std::unique_ptr<Job> job) {
  job->times.started = clock_.Now();
  observer_.OnQueued(job->times.started - job->times.submitted);
  absl::StatusOr<std::unique_ptr<CachedSequence>> cached = Enter(*job);
  if (!cached.ok()) {
    ended_.push_back({std::move(job), absl::InternalError(cached.status().message())});
    return;
  }
  running_.push_back(std::make_unique<Sequence>(std::move(job), *std::move(cached)));
}

absl::StatusOr<std::unique_ptr<CachedSequence>> StepLoop::Enter(const Job& job) {
  if (job.session.has_value() && job.session->state().parked.has_value()) {
    const ParkingPlace& place = *job.session->state().parked;
    if (place.worker == options_.worker && cache_->IsParked(place.ticket)) {
      return cache_->Resume(place.ticket, job.MostTokens());
    }
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CachedSequence> cached,
                      cache_->Begin(job.stream().all(), job.MostReused(), job.MostTokens()));
  const int64_t recompute_from = cache_->RecomputeFrom(job.stream().read());
  if (cached->position() >= recompute_from) return cached;
  cached.reset();  // gives its reservation back
  return cache_->BeginAt(recompute_from, job.MostTokens());
}

void StepLoop::KeepSession(Sequence& sequence) {
  const Job& job = sequence.job();
  if (!job.session.has_value()) return;
  const std::vector<int32_t>& stream = job.stream().all();
  SessionState state{.tokens = {stream.begin(), stream.begin() + job.SessionTokens()}, .parked = std::nullopt};
  if (sequence.StandAtSessionEnd()) {
    state.parked = ParkingPlace{.worker = options_.worker, .ticket = cache_->Park(sequence.TakeCached())};
  }
  sequence.job().session->Commit(std::move(state));
}

void StepLoop::PlanPieces() {
  candidates_.clear();
  for (const auto& sequence : running_) {
    const auto unread = static_cast<int64_t>(sequence->Unread().size());
    candidates_.push_back({.id = sequence->job().number,
                           .ticket = &*sequence->job().charge,
                           .decoding = sequence->decoding(),
                           .position = sequence->position(),
                           .unread = unread,
                           .most = sequence->MostTokens(unread)});
  }
  pieces_ = planner_.Plan(candidates_);
}

void StepLoop::Step() {
  PlanPieces();
  slices_.clear();
  int64_t rows = 0;
  int64_t logit_rows = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (pieces_[i] == 0) continue;
    // Those before it may have taken the room that it could have had when the step was planned.
    planner_.Shorten(i, running_[i]->MostTokens(pieces_[i]));
    absl::StatusOr<Slice> slice = running_[i]->NextSlice(pieces_[i]);
    if (!slice.ok()) return EndRunning(slice.status());
    slices_.push_back(*slice);
    rows += pieces_[i];
    logit_rows += slices_.back().logit_rows;
  }
  const absl::Time begin = clock_.Now();
  const absl::StatusOr<StepResult> result = model_.Step(slices_);
  const absl::Duration step = clock_.Now() - begin;
  observer_.OnStep(step, rows);
  if (result.ok()) Account(step);
  if (!result.ok()) {
    EndRunning(absl::InternalError(absl::StrCat("the model's step failed: ", result.status().message())));
  } else if (static_cast<int64_t>(result->logits.size()) != logit_rows * model_.info().vocabulary_size) {
    EndRunning(absl::InternalError("the model's step returned logits of another size than was asked for"));
  } else {
    Deliver(result->logits);
  }
}

void StepLoop::Account(absl::Duration step) {
  planner_.OnStep(step);
  queue_.SetSteps(planner_.cost(), options_.max_streams);
  for (size_t i = 0; i < running_.size(); ++i) {
    Job& job = running_[i]->job();
    job.worker_time.all += planner_.ShareOf(i);
    if (!running_[i]->decoding()) job.worker_time.prefill += planner_.ShareOf(i);
  }
}

void StepLoop::Deliver(absl::Span<const float> logits) {
  const absl::Time now = clock_.Now();
  auto slice = slices_.begin();
  for (size_t i = 0; i < running_.size(); ++i) {
    if (pieces_[i] == 0) continue;
    const int64_t count = (slice++)->logit_rows * model_.info().vocabulary_size;
    absl::Status status = running_[i]->OnRead(pieces_[i], logits.first(count), now);
    logits.remove_prefix(count);
    if (status.ok() && running_[i]->job().complete()) KeepSession(*running_[i]);
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
  const CacheState cache = cache_->state();
  EngineState state{.queued_requests = next_ == nullptr ? 0 : 1,
                    .active_streams = static_cast<int64_t>(running_.size()),
                    .cache_bytes_used = Bytes(cache.in_use, page_bytes),
                    .cache_bytes_idle = Bytes(cache.idle, page_bytes),
                    .cache_bytes_free = Bytes(cache.free, page_bytes),
                    .cache = cache};
  {
    std::lock_guard lock(state_mutex_);
    state_ = state;
  }
  state.queued_requests += queue_.size();
  observer_.OnState(state);
}

void StepLoop::TellEnded() {
  for (EndedJob& ended : ended_) {
    queue_.Settle(*ended.job, clock_.Now());
    ended.job->Finish(ended.status, clock_.Now());
  }
  ended_.clear();
}

}  // namespace longshort
