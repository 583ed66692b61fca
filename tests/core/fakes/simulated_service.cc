#include "tests/core/fakes/simulated_service.h"

#include <utility>

#include "core/cache/cache_capacity.h"
#include "core/engine/make_job.h"
#include "core/session/session_pages.h"
#include "gtest/gtest.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

// Pages to free, between two rounds of the engine that has them.
class PagesToDrop final : public SessionPages {
 public:
  void GiveUp(const ParkedPlace& place) override { places_.push_back(place.id); }
  void DropFrom(PagedCache& cache) {
    for (const ParkedId id : std::exchange(places_, {})) cache.Drop(id);
  }

 private:
  std::vector<ParkedId> places_;
};

}  // namespace

class SimulatedService::Observer final : public EngineObserver {
 public:
  explicit Observer(Counts& counts) : counts_(counts) {}

  void OnQueued(absl::Duration waited) override { EXPECT_GE(waited, absl::ZeroDuration()); }
  void OnPrefilled(absl::Duration prefill, int64_t) override { EXPECT_GE(prefill, absl::ZeroDuration()); }
  void OnStep(absl::Duration, int64_t rows) override {
    ++counts_.steps;
    counts_.rows += rows;
  }
  void OnFirstToken(absl::Duration since_submission) override { EXPECT_GE(since_submission, absl::ZeroDuration()); }
  void OnNextToken(absl::Duration since_previous) override { EXPECT_GE(since_previous, absl::ZeroDuration()); }
  void OnFailure(const absl::Status&) override { ++counts_.failed_steps; }
  void OnWorkerRebuilt(const absl::Status&) override {}
  void OnState(const EngineState&) override {}

 private:
  Counts& counts_;
};

struct SimulatedService::SimulatedEngine {
  explicit SimulatedEngine(const RequestQueue::Options& options) : queue(options) {}

  std::shared_ptr<PagesToDrop> pages = std::make_shared<PagesToDrop>();
  RequestQueue queue;
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<StepLoop> loop;
  absl::Time deadline = absl::InfiniteFuture();

  bool busy() const { return !queue.empty() || !loop->idle(); }
};

SimulatedService::SimulatedService(FakeLanguageModel& model, const Vocabulary& vocabulary, const Clock& clock,
                                   const Options& options)
    : model_(model),
      vocabulary_(vocabulary),
      clock_(clock),
      options_(options),
      observer_(std::make_unique<Observer>(counts_)),
      token_budget_(std::make_shared<TokenBudget>(options.most_prompt_tokens)),
      sessions_(clock, options.sessions) {
  Reload(absl::InfiniteFuture());
}

SimulatedService::~SimulatedService() = default;

void SimulatedService::Reload(absl::Time deadline) {
  if (!engines_.empty()) {
    engines_.back().queue.Close();
    engines_.back().deadline = deadline;
  }
  SimulatedEngine& engine = engines_.emplace_back(options_.queue);
  engine.model = *model_.Replicate(0);
  engine.loop = *StepLoop::Create(*engine.model, engine.queue, clock_, *observer_, options_.step_loop);
}

absl::Status SimulatedService::Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener) {
  return Submit(
      MakeJob(std::move(request), std::move(listener), vocabulary_, *observer_, sessions_, engines_.back().pages));
}

absl::Status SimulatedService::Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) {
  return Submit(
      MakeJob(std::move(request), std::move(listener), vocabulary_, *observer_, sessions_, engines_.back().pages));
}

absl::Status SimulatedService::Submit(absl::StatusOr<std::unique_ptr<Job>> job) {
  LS_RETURN_IF_ERROR(job.status());
  LS_ASSIGN_OR_RETURN((*job)->held_tokens, TokenBudget::Take(token_budget_, (*job)->stream().end()));
  (*job)->times.submitted = clock_.Now();
  return engines_.back().queue.Push(*std::move(job));
}

bool SimulatedService::RunRound() {
  sessions_.EndExpired();
  bool more = false;
  for (auto engine = engines_.begin(); engine != engines_.end();) {
    more |= RunRound(*engine);
    const auto ran = engine++;
    if (!ran->queue.closed() || ran->busy()) continue;
    AddCounters(*ran, counts_);
    engines_.erase(ran);
  }
  return more;
}

bool SimulatedService::RunRound(SimulatedEngine& engine) {
  engine.pages->DropFrom(engine.loop->cache());
  if (clock_.Now() >= engine.deadline && engine.busy()) {
    last_forced_end_ = clock_.Now();
    engine.loop->EndAll(absl::UnavailableError("the server is stopping"));
  }
  const bool more = engine.loop->RunOnce();
  if (!engine.loop->broken()) return more;
  AddCounters(engine, counts_);
  engine.loop.reset();
  engine.model = *model_.Replicate(0);
  engine.loop = *StepLoop::Create(*engine.model, engine.queue, clock_, *observer_, options_.step_loop);
  ++counts_.rebuilt;
  return true;
}

void SimulatedService::AddCounters(const SimulatedEngine& engine, Counts& counts) {
  const CacheCounters counters = engine.loop->state().cache.counters;
  counts.cache.hits += counters.hits;
  counts.cache.reused_tokens += counters.reused_tokens;
  counts.cache.resumed += counters.resumed;
  counts.cache.evicted_parked += counters.evicted_parked;
  counts.cache.evicted_ends += counters.evicted_ends;
}

SimulatedService::Counts SimulatedService::counts() const {
  Counts counts = counts_;
  for (const SimulatedEngine& engine : engines_) AddCounters(engine, counts);
  return counts;
}

bool SimulatedService::busy() const {
  for (const SimulatedEngine& engine : engines_) {
    if (engine.busy()) return true;
  }
  return false;
}

CacheState SimulatedService::cache() const { return engines_.back().loop->state().cache; }

absl::Status SimulatedService::CheckInvariants() const {
  for (const SimulatedEngine& engine : engines_) LS_RETURN_IF_ERROR(engine.loop->CheckInvariants());
  return absl::OkStatus();
}

}  // namespace longshort
