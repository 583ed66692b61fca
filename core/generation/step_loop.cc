#include "core/generation/step_loop.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/generation/sequence.h"

namespace longshort::core {
namespace {

absl::Status CheckOptions(const StepLoop::Options& options) {
  if (options.max_streams < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_streams is ", options.max_streams, ", must be at least 1"));
  }
  return StepPlanner::Check(options.steps);
}

}  // namespace

absl::StatusOr<models::CachePages> StepLoop::CacheFor(const models::LanguageModelInfo& model, const Options& options) {
  if (options.cache_bytes == 0) return PagesForStreams(model, options.max_streams);
  return PagesForBytes(model, options.cache_bytes, options.max_streams);
}

absl::StatusOr<std::unique_ptr<StepLoop>> StepLoop::Create(models::LanguageModel& model, RequestQueue& queue,
                                                           const Clock& clock, WorkerStates& states,
                                                           const Options& options) {
  LS_RETURN_IF_ERROR(CheckOptions(options));
  LS_ASSIGN_OR_RETURN(const models::CachePages capacity, CacheFor(model.info(), options));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<PagedCache> cache, PagedCache::Create(model, capacity));
  std::unique_ptr<StepLoop> loop(new StepLoop(model, queue, clock, states, options, capacity, std::move(cache)));
  if (options.sampling_threads > 0) {
    LS_ASSIGN_OR_RETURN(loop->helpers_, HelperThreads::Create(options.sampling_threads));
  }
  return loop;
}

StepLoop::StepLoop(models::LanguageModel& model, RequestQueue& queue, const Clock& clock, WorkerStates& states,
                   const Options& options, const models::CachePages& capacity, std::unique_ptr<PagedCache> cache)
    : model_(model),
      queue_(queue),
      clock_(clock),
      states_(states),
      options_(options),
      streams_of_any_length_(std::min(options.max_streams, StreamsThatFit(model.info(), capacity))),
      cache_(std::move(cache)),
      planner_(options.steps, model.info().chunk_size, model.info().step_limits) {
  running_.reserve(options.max_streams);
  queue_.OnWorkerStarted(Taker());
  states_.Set(options_.worker, state());
}

bool StepLoop::RunOnce() {
  EndAbandoned();
  ParkPaused();
  const size_t before = running_.size();
  Admit();
  if (running_.size() > before) states_.Set(options_.worker, state());  // before the step, which may hang
  if (!running_.empty()) Step();
  states_.Set(options_.worker, state());
  NotifyEnded();
  return !broken() && (!running_.empty() || queue_.HasJobFor(Taker()));
}

void StepLoop::EndAll(const absl::Status& status) {
  EndRunning(status);
  for (std::unique_ptr<Job>& job : queue_.TakeAll()) ended_.push_back({std::move(job), status});
  states_.Set(options_.worker, state());
  NotifyEnded();
}

LanguageModelEngineState StepLoop::state() const {
  const models::CachePages page_bytes = model_.info().page_bytes;
  const CacheState cache = cache_->state();
  return {.active_streams = static_cast<int64_t>(running_.size()),
          .cache_bytes_used = Bytes(cache.in_use, page_bytes),
          .cache_bytes_idle = Bytes(cache.idle, page_bytes),
          .cache_bytes_free = Bytes(cache.free, page_bytes),
          .cache_page_bytes = page_bytes,
          .cache = cache};
}

void StepLoop::EndAbandoned() {
  const absl::Time now = clock_.Now();
  for (std::unique_ptr<Job>& job : queue_.TakeAbandoned(now)) {
    absl::Status why = job->CheckNotAbandoned(now);
    ended_.push_back({std::move(job), std::move(why)});
  }
  for (std::unique_ptr<Sequence>& sequence : running_) {
    if (sequence->in_step()) continue;
    absl::Status why = sequence->job().CheckNotAbandoned(now);
    if (!why.ok()) End(std::move(sequence), std::move(why));
  }
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
}

void StepLoop::ParkPaused() {
  std::vector<std::unique_ptr<Job>> paused;
  for (std::unique_ptr<Sequence>& sequence : running_) {
    if (sequence->job().paused() && !sequence->in_step()) paused.push_back(Park(std::move(sequence)));
  }
  if (paused.empty()) return;
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
  queue_.Return(std::move(paused));
}

std::unique_ptr<Job> StepLoop::Park(std::unique_ptr<Sequence> sequence) {
  sequence->job().parked_rows.ParkOwn({.worker = options_.worker, .id = cache_->Park(sequence->TakeCached())});
  return sequence->TakeJob();
}

void StepLoop::Admit() {
  const bool on_probation = queue_.IsOnProbation(options_.worker);
  const int64_t max_streams = on_probation ? 1 : options_.max_streams;
  const auto full = [&] { return static_cast<int64_t>(running_.size()) >= max_streams; };
  max_long_prompts_ = PromptsAhead::MaxLong(streams_of_any_length_, queue_.active_clients());
  while (true) {
    const PromptsAhead prompts = PromptsBeingRead();
    std::unique_ptr<Job> job;
    if (!full()) {
      job = queue_.TakeFirst(
          Taker(), [&](const Job& next) { return Decide(next, prompts); },
          [&](const Job& next) { TokensToRead(next); });
    }
    if (job == nullptr) {
      if (!on_probation && Displace(prompts)) continue;
      break;
    }
    if (absl::Status why = CheckWorthStarting(*job); !why.ok()) {
      ended_.push_back({std::move(job), std::move(why)});
    } else if (job->complete()) {
      EndComplete(std::move(job));
    } else {
      Start(std::move(job));
    }
  }
  if (full()) queue_.OnWorkerFull(options_.worker);
}

bool StepLoop::Displace(const PromptsAhead& prompts) {
  if (running_.size() < 2 || queue_.empty()) return false;
  std::vector<const Job*> jobs;
  jobs.reserve(running_.size());
  for (const std::unique_ptr<Sequence>& sequence : running_) jobs.push_back(&sequence->job());
  const Job* const displaced = queue_.FindDisplaced(
      Taker(), [&](const Job& next) { return Decide(next, prompts); }, jobs,
      [&](const Job& next) { TokensToRead(next); });
  const auto position = std::find(jobs.begin(), jobs.end(), displaced);
  if (position == jobs.end() || running_[position - jobs.begin()]->in_step()) return false;
  const RequestQueue::Taker taker = Taker();
  const auto sequence = running_.begin() + (position - jobs.begin());
  std::unique_ptr<Job> job = Park(std::move(*sequence));
  running_.erase(sequence);
  queue_.Requeue(std::move(job), taker);
  return true;
}

RequestQueue::Decision StepLoop::Decide(const Job& next, const PromptsAhead& prompts) {
  // A job that was started before gets a stream, whatever it has to read.
  const bool is_new = next.times.started == absl::InfiniteFuture();
  if (is_new && !next.complete()) {
    if (NeedsLongSearch(*cache_, options_.worker, next)) return RequestQueue::Decision::kSearch;
    const RequestContext& context = next.context();
    const int64_t unread = TokensToRead(next);
    if (prompts.IsLong(unread) && prompts.LongPrompts(context.client, context.priority) >= max_long_prompts_) {
      return RequestQueue::Decision::kSkip;
    }
    if (!prompts.LeaveRoomFor(unread)) return RequestQueue::Decision::kWaitToRead;
  }
  return FitsNow(*cache_, next) ? RequestQueue::Decision::kTake : RequestQueue::Decision::kWaitForRoom;
}

RequestQueue::Taker StepLoop::Taker() const {
  return {.worker = options_.worker,
          .running = static_cast<int64_t>(running_.size()),
          .max_streams = options_.max_streams,
          .now = clock_.Now()};
}

PromptsAhead StepLoop::PromptsBeingRead() const {
  std::vector<PromptsAhead::Prompt> prompts;
  for (const std::unique_ptr<Sequence>& sequence : running_) {
    if (sequence->decoding()) continue;
    prompts.push_back({.all = sequence->unread_when_begun(),
                       .rest = static_cast<int64_t>(sequence->Unread().size()),
                       .priority = sequence->job().context().priority,
                       .client = sequence->job().context().client});
  }
  const auto decoding = static_cast<int64_t>(running_.size() - prompts.size());
  return {std::move(prompts), planner_.PromptRowsBeside(decoding)};
}

absl::Status StepLoop::CheckWorthStarting(const Job& job) const {
  const absl::Time now = clock_.Now();
  LS_RETURN_IF_ERROR(job.CheckNotAbandoned(now));  // it may have arrived after its deadline
  if (job.complete() || job.times.started != absl::InfiniteFuture()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(cache_->CheckFits(job.MaxTokens()));
  return queue_.CheckDeadlineCanBeMet(job, TokensToRead(job), now);
}

int64_t StepLoop::TokensToRead(const Job& job) const {
  return longshort::core::TokensToRead(*cache_, options_.worker, job);
}

void StepLoop::Start(std::unique_ptr<Job> job) {
  if (job->times.started == absl::InfiniteFuture()) {
    job->times.started = clock_.Now();
    states_.observer().OnQueued(job->times.started - job->times.submitted);
  }
  Enter(std::move(job));
}

void StepLoop::EndComplete(std::unique_ptr<Job> job) {
  job->times.started = clock_.Now();
  states_.observer().OnQueued(job->times.started - job->times.submitted);
  states_.observer().OnPrefilled(absl::ZeroDuration(), job->prompt_tokens());
  if (auto& session = job->resources.session; session.has_value()) {
    session->Commit({.tokens = job->stream().all(), .parked = {}});
  }
  ended_.push_back({std::move(job), absl::OkStatus()});
}

void StepLoop::Enter(std::unique_ptr<Job> job) {
  absl::StatusOr<std::unique_ptr<CachedSequence>> cached = BeginSequence(*cache_, *job);
  if (!cached.ok()) {
    ended_.push_back({std::move(job), absl::InternalError(cached.status().message())});
    return;
  }
  RemoveParkedHere(*job);
  job->parked_rows.Release();
  const auto behind = std::find_if(running_.begin(), running_.end(), [&](const auto& other) {
    return other->job().entry.number() > job->entry.number();
  });
  running_.insert(behind, std::make_unique<Sequence>(std::move(job), *std::move(cached)));
}

void StepLoop::KeepSession(Sequence& sequence) {
  Job& job = sequence.job();
  if (!job.resources.session.has_value()) return;
  const std::vector<int32_t>& stream = job.stream().all();
  SessionState state{.tokens = {stream.begin(), stream.begin() + job.SessionTokens()}, .parked = std::nullopt};
  if (sequence.MoveToSessionEnd()) {
    state.parked = {.worker = options_.worker, .id = cache_->Park(sequence.TakeCached())};
  }
  job.resources.session->Commit(std::move(state));
}

int64_t StepLoop::DecodingSequences() const {
  return std::count_if(running_.begin(), running_.end(), [](const auto& sequence) { return sequence->decoding(); });
}

bool StepLoop::DividesStreams() const {
  const StepCost& cost = planner_.cost();
  return model_.steps_at_once() > 1 && cost.known() && sampling_ * DecodingSequences() > cost.fixed();
}

bool StepLoop::MayBegin() const {
  return begun_.empty() || (static_cast<int64_t>(begun_.size()) < model_.steps_at_once() &&
                            (DividesStreams() || DecodingSequences() == 0));
}

bool StepLoop::PlanPieces() {
  planned_.clear();
  for (size_t i = 0; i < running_.size(); ++i) planned_.push_back(i);
  const auto suspect = std::find_if(running_.begin(), running_.end(), [](const auto& sequence) {
    return sequence->job().steps.failures.suspect() && !sequence->catching_up();
  });
  if (suspect != running_.end()) {
    if (!begun_.empty()) return false;  // it runs alone
    planned_ = {static_cast<size_t>(suspect - running_.begin())};
  }
  int64_t decoding_left = DividesStreams() ? (DecodingSequences() + 1) / 2 : std::numeric_limits<int64_t>::max();
  bool any = false;
  candidates_.clear();
  for (const size_t i : planned_) {
    Sequence& sequence = *running_[i];
    const bool takes_part = !sequence.in_step() && (!sequence.decoding() || decoding_left-- > 0);
    const auto unread = static_cast<int64_t>(sequence.Unread().size());
    candidates_.push_back({.id = sequence.job().entry.number(),
                           .attributes = &sequence.job().entry.attributes(),
                           .decoding = sequence.decoding(),
                           .position = sequence.position(),
                           .unread = unread,
                           .max_tokens = sequence.MaxTokens(unread),
                           .in_other_step = !takes_part});
    any |= takes_part;
  }
  if (any) pieces_ = planner_.Plan(candidates_);
  return any;
}

void StepLoop::Step() {
  const bool begun = MayBegin() && BeginStep();
  // The device is busy; perhaps another step can begin.
  if (begun && static_cast<int64_t>(begun_.size()) < model_.steps_at_once()) return;
  if (!begun_.empty()) FinishStep();
}

bool StepLoop::BeginStep() {
  for (std::unique_ptr<Sequence>& sequence : running_) {
    if (sequence->in_step()) continue;
    if (absl::Status skipped = sequence->SkipRead(*cache_); !skipped.ok()) End(std::move(sequence), std::move(skipped));
  }
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
  if (!PlanPieces()) return false;
  BegunStep step;
  slices_.clear();
  // Documents need logits of each row, as many as the others leave.
  int64_t max_prompt_logits = model_.info().step_limits.logit_rows - planner_.planned().rows.decoding;
  for (size_t k = 0; k < planned_.size(); ++k) {
    if (pieces_[k] == 0) continue;
    Sequence& sequence = *running_[planned_[k]];
    // Sequences before it may have taken pages that were free when the step was planned.
    planner_.Shorten(k, sequence.MaxTokens(pieces_[k]));
    if (!sequence.decoding()) planner_.Shorten(k, sequence.TokensWithLogits(pieces_[k], max_prompt_logits));
    if (pieces_[k] == 0) continue;
    absl::StatusOr<models::Slice> slice = sequence.NextSlice(pieces_[k]);
    if (!slice.ok()) {
      EndRunning(slice.status());
      return false;
    }
    slices_.push_back(*slice);
    step.parts.push_back(
        {.sequence = &sequence, .candidate = k, .tokens = pieces_[k], .logit_rows = slice->logit_rows});
    step.rows += pieces_[k];
    step.logit_rows += slice->logit_rows;
    if (!sequence.decoding()) max_prompt_logits -= slice->logit_rows;
  }
  step.planned = planner_.planned();
  step.begun = clock_.Now();
  if (model_.steps_at_once() > 1) {  // otherwise FinishStep runs it
    const absl::Status status = health_.RunModel("the model's step", [this] { return model_.BeginStep(slices_); });
    if (!status.ok()) {
      const absl::Duration time = clock_.Now() - step.begun;
      EndStep(std::move(step), status, time);
      return false;
    }
  }
  for (const Part& part : step.parts) part.sequence->set_in_step(true);
  begun_.push_back(std::move(step));
  return true;
}

void StepLoop::FinishStep() {
  BegunStep step = std::move(begun_.front());
  begun_.pop_front();
  for (const Part& part : step.parts) part.sequence->set_in_step(false);
  const absl::StatusOr<models::StepResult> result =
      health_.RunModel("the model's step", &models::StepResult::logits, step.logit_rows * model_.info().vocabulary_size,
                       [this] { return model_.steps_at_once() > 1 ? model_.FinishStep() : model_.Step(slices_); });
  // The device's own time does not include what the worker did meanwhile.
  absl::Duration time = clock_.Now() - step.begun;
  if (result.ok()) time = result->device_time.value_or(time);
  EndStep(std::move(step), result, time);
}

void StepLoop::EndStep(BegunStep step, const absl::StatusOr<models::StepResult>& result, absl::Duration time) {
  states_.observer().OnStep(time, step.rows);
  RecordStep(step, time, !result.ok());
  if (!result.ok()) return Recover(step, result.status());
  const absl::Time begun = clock_.Now();
  Deliver(step, result->logits);
  if (step.logit_rows > 0) sampling_ = (3 * sampling_ + (clock_.Now() - begun) / step.logit_rows) / 4;
}

void StepLoop::DropSteps() {
  for (; !begun_.empty(); begun_.pop_front()) {
    if (model_.steps_at_once() > 1) {
      health_.RunModel("the model's step", [this] { return model_.FinishStep().status(); }).IgnoreError();
    }
    for (const Part& part : begun_.front().parts) part.sequence->set_in_step(false);
  }
}

void StepLoop::ForParts(BegunStep& step, absl::FunctionRef<void(std::unique_ptr<Sequence>&, const Part&)> use) {
  auto part = step.parts.begin();
  for (std::unique_ptr<Sequence>& sequence : running_) {
    if (part == step.parts.end()) break;
    if (sequence.get() == part->sequence) use(sequence, *part++);
  }
  running_.erase(std::remove(running_.begin(), running_.end(), nullptr), running_.end());
}

void StepLoop::RecordStep(const BegunStep& step, absl::Duration time, bool failed) {
  planner_.OnStep(step.planned, time, failed);
  queue_.SetSteps(options_.worker, planner_.cost(), options_.max_streams);
  for (const Part& part : step.parts) {
    Sequence& sequence = *part.sequence;
    StepRecord& record = sequence.job().steps;
    const absl::Duration share = planner_.ShareOf(part.candidate);
    if (failed || sequence.catching_up()) {
      record.overhead += share;
    } else {
      record.worker_time.all += share;
      if (!sequence.decoding()) record.worker_time.prefill += share;
    }
  }
}

void StepLoop::Recover(BegunStep& step, const absl::Status& failure) {
  states_.observer().OnFailure(failure);
  health_.OnFailure(queue_.IsOnProbation(options_.worker));
  const bool alone = step.parts.size() == 1;
  std::vector<std::unique_ptr<Job>> again;
  ForParts(step, [&](std::unique_ptr<Sequence>& sequence, const Part&) {
    sequence->job().steps.failures.OnFailure(alone);
    if (sequence->job().steps.failures.exhausted()) {
      End(std::move(sequence), failure);
    } else if (!broken()) {
      again.push_back(sequence->TakeJob());
      sequence = nullptr;  // the rows of this step are undefined; earlier ones can be found
    }
  });
  for (std::unique_ptr<Job>& job : again) Enter(std::move(job));
  if (broken()) ReturnRunning();
}

void StepLoop::ReturnRunning() {
  DropSteps();
  std::vector<std::unique_ptr<Job>> jobs;
  jobs.reserve(running_.size());
  for (std::unique_ptr<Sequence>& sequence : running_) jobs.push_back(sequence->TakeJob());
  running_.clear();
  queue_.Return(std::move(jobs));
}

void StepLoop::Deliver(BegunStep& step, absl::Span<const float> logits) {
  const absl::Time now = clock_.Now();
  // Reading tokens again that passed before does not show that the model has recovered.
  bool read_something_new = false;
  std::vector<Sampling> samplings;
  for (const Part& part : step.parts) {
    Sequence& sequence = *part.sequence;
    if (RequestTimes& times = sequence.job().times; times.prefilled == absl::InfiniteFuture()) {
      times.prompt_pieces.Add({.begin = step.begun, .end = now, .tokens = part.tokens, .steps = 1});
    }
    const bool only_restored = sequence.catching_up();
    sequence.OnRowsRead(part.tokens);
    const int64_t count = part.logit_rows * model_.info().vocabulary_size;
    samplings.push_back({.logits = logits.first(count), .only_restored = only_restored, .status = absl::OkStatus()});
    logits.remove_prefix(count);
    if (only_restored) continue;
    sequence.job().steps.failures.OnSuccess(/*alone=*/step.parts.size() == 1);
    read_something_new = true;
  }
  const auto sample = [&](int64_t i) {
    Sampling& sampling = samplings[i];
    if (sampling.only_restored) return;
    sampling.status = step.parts[i].sequence->OnRead(step.parts[i].tokens, sampling.logits, now);
  };
  const auto count = static_cast<int64_t>(samplings.size());
  if (helpers_ != nullptr) {
    helpers_->ForEach(count, sample);
  } else {
    for (int64_t i = 0; i < count; ++i) sample(i);
  }
  auto sampling = samplings.begin();
  ForParts(step, [&](std::unique_ptr<Sequence>& sequence, const Part&) {
    absl::Status status = std::move((sampling++)->status);
    if (!status.ok()) sequence->WithdrawRows();
    if (status.ok() && sequence->job().complete()) KeepSession(*sequence);
    if (!status.ok() || sequence->job().complete()) End(std::move(sequence), std::move(status));
  });
  if (!read_something_new) return;
  health_.OnSuccess();
  queue_.OnModelPassed(options_.worker);
}

void StepLoop::End(std::unique_ptr<Sequence> sequence, absl::Status status) {
  ended_.push_back({sequence->TakeJob(), std::move(status)});
}

void StepLoop::EndRunning(const absl::Status& status) {
  DropSteps();
  for (std::unique_ptr<Sequence>& sequence : running_) End(std::move(sequence), status);
  running_.clear();
}

void StepLoop::RemoveParkedHere(Job& job) {
  if (const std::optional<ParkedId> own = job.parked_rows.TakeOwn(options_.worker)) cache_->RemoveParked(*own);
}

void StepLoop::NotifyEnded() {
  for (EndedJob& ended : ended_) {
    RemoveParkedHere(*ended.job);
    queue_.Complete(*ended.job, clock_.Now());
    ended.job->ReleaseResources();
    ended.job->Finish(ended.status, clock_.Now());
  }
  ended_.clear();
}

}  // namespace longshort::core
