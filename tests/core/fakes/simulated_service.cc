#include "tests/core/fakes/simulated_service.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/generation/continuous_batching_engine.h"
#include "core/generation/worker_states.h"
#include "core/requests/language_model_jobs.h"
#include "core/session/session.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core {

class SimulatedService::Observer final : public LanguageModelEngineObserver {
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
  void OnWorkerRebuilt(const absl::Status& status) override { counts_.rebuilt += status.ok() ? 1 : 0; }
  void OnState(const LanguageModelEngineState&) override {}

 private:
  Counts& counts_;
};

struct SimulatedService::SimulatedEngine {
  // Which worker has what pages.
  class Pages final : public SessionPages {
   public:
    explicit Pages(SimulatedEngine& engine) : engine_(&engine) {}
    void Release(const ParkedPlace& place) override {
      if (engine_ == nullptr) return;
      engine_->workers[place.worker]->RemoveParked(place.id);
      engine_->queue.Wake();
    }
    void End() { engine_ = nullptr; }

   private:
    SimulatedEngine* engine_;
  };

  SimulatedEngine(const FakeLanguageModel* model, SessionStore& sessions, const Clock& clock,
                  LanguageModelEngineObserver& observer, const Options& options)
      : weights(WeightsOf(model)),
        queue(options.queue, models::CpuWorkers(options.workers)),
        states(options.workers, queue, observer) {
    StepLoop::Options step_loop = options.step_loop;
    for (step_loop.worker = 0; step_loop.worker < options.workers; ++step_loop.worker) {
      workers.push_back(std::make_unique<SimulatedWorker>(weights, queue, sessions, clock, states, step_loop));
    }
  }
  ~SimulatedEngine() {
    queue.Close();
    EndNow();
    for (const auto& worker : workers) {
      while (!worker->ended()) worker->Run();
    }
    pages->End();
  }

  bool busy() const {
    const auto in_step = [](const auto& worker) { return worker->in_step(); };
    return !queue.empty() || std::any_of(workers.begin(), workers.end(), in_step);
  }
  bool ended() const {
    return std::all_of(workers.begin(), workers.end(), [](const auto& worker) { return worker->ended(); });
  }
  void EndNow() {
    if (std::exchange(ends_now, true)) return;
    queue.EndNow();
  }

  const std::shared_ptr<Pages> pages = std::make_shared<Pages>(*this);
  const models::LanguageModelWeights weights;
  RequestQueue queue;
  WorkerStates states;
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
  absl::Time deadline = absl::InfiniteFuture();
  bool ends_now = false;
};

SimulatedService::SimulatedService(FakeLanguageModel& model, const Vocabulary& vocabulary, const Clock& clock,
                                   const Options& options)
    : model_(model),
      vocabulary_(vocabulary),
      clock_(clock),
      options_(options),
      observer_(std::make_unique<Observer>(counts_)),
      token_budgets_(PromptTokenBudgets(options.max_prompt_tokens)),
      sessions_(clock, options.sessions) {
  StayOnOneProcessor();
  Reload(absl::InfiniteFuture());
}

SimulatedService::~SimulatedService() = default;

void SimulatedService::Reload(absl::Time deadline) {
  if (!engines_.empty()) {
    engines_.back().queue.Close();
    engines_.back().deadline = deadline;
  }
  engines_.emplace_back(&model_, sessions_, clock_, *observer_, options_);
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
  LS_ASSIGN_OR_RETURN((*job)->resources.tokens,
                      Budget::Take(token_budgets_->Of((*job)->context().client), (*job)->HeldTokens()));
  (*job)->times.submitted = clock_.Now();
  return engines_.back().queue.Push(*std::move(job));
}

bool SimulatedService::RunRound() {
  sessions_.EndExpired();
  bool ran = false;
  for (auto engine = engines_.begin(); engine != engines_.end();) {
    if (clock_.Now() >= engine->deadline) engine->EndNow();
    for (size_t i = 0; i < engine->workers.size(); ++i) {
      running_ = engine->workers[i].get();
      running_number_ = static_cast<int>(i);
      if (running_->ended() || !running_->due()) continue;
      running_->Run();
      ran = true;
    }
    const auto last = engine++;
    if (!last->ended()) continue;
    AddCounters(*last, counts_);
    engines_.erase(last);
  }
  return ran;
}

absl::Time SimulatedService::next() const {
  absl::Time next = absl::InfiniteFuture();
  for (const SimulatedEngine& engine : engines_) {
    next = std::min(next, engine.deadline > clock_.Now() ? engine.deadline : absl::InfiniteFuture());
    for (const auto& worker : engine.workers) {
      if (!worker->ended()) next = std::min(next, worker->next());
    }
  }
  return next;
}

bool SimulatedService::HasSleeperBesideWork() {
  for (const SimulatedEngine& engine : engines_) {
    for (const auto& worker : engine.workers) {
      if (worker->SleepsBesideWork()) return true;
    }
  }
  return false;
}

void SimulatedService::Wake() {
  for (SimulatedEngine& engine : engines_) engine.queue.Wake();
}

void SimulatedService::AddCounters(const SimulatedEngine& engine, Counts& counts) {
  const CacheCounters counters = engine.states.Sum().cache.counters;
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
  return std::any_of(engines_.begin(), engines_.end(), [](const SimulatedEngine& engine) { return engine.busy(); });
}

bool SimulatedService::ends_by_force() const {
  return std::any_of(engines_.begin(), engines_.end(), [](const SimulatedEngine& engine) { return engine.ends_now; });
}

CacheState SimulatedService::cache() const {
  CacheState sum;
  for (const auto& worker : engines_.back().workers) {
    const CacheState cache = worker->cache();
    sum.in_use = sum.in_use + cache.in_use;
    sum.reserved = sum.reserved + cache.reserved;
    sum.parked_sequences += cache.parked_sequences;
  }
  return sum;
}

absl::Status SimulatedService::CheckInvariants() const {
  for (const SimulatedEngine& engine : engines_) {
    for (const auto& worker : engine.workers) LS_RETURN_IF_ERROR(worker->CheckInvariants());
  }
  return absl::OkStatus();
}

}  // namespace longshort::core
