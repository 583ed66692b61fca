#include "core/generation/continuous_batching_engine.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/requests/language_model_jobs.h"
#include "core/requests/request_context.h"

namespace longshort::core {
namespace {

// The retry delay if prompts fill the budget: reading them takes seconds, and their tokens are held until their
// requests end.
constexpr absl::Duration kMinTimeForPrompts = absl::Seconds(1);

// value * part / whole, rounded up.
int64_t PartOf(int64_t value, int64_t part, int64_t whole) {
  return static_cast<int64_t>((absl::uint128(value) * absl::uint128(part) + absl::uint128(whole - 1)) / whole);
}

absl::Status CheckWorkers(absl::Span<const models::WorkerDevice> workers) {
  if (workers.empty()) return absl::InvalidArgumentError("workers is 0, must be at least 1");
  const auto says_memory = [](const models::WorkerDevice& worker) { return worker.memory_bytes > 0; };
  const auto count = std::count_if(workers.begin(), workers.end(), says_memory);
  if (count == 0 || count == static_cast<int64_t>(workers.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, " of ", workers.size(), " workers set memory_bytes; all or none must"));
}

// A GPU's worker shares the processor with those of other GPUs and with the calls.
int64_t SamplingThreads() {
  return std::clamp<int64_t>(static_cast<int64_t>(std::thread::hardware_concurrency()) / 4, 0, 3);
}

// Each worker's part of the engine's resources. REQUIRES: CheckWorkers is OK.
std::vector<LanguageModelReplica::Options> WorkerOptions(const ContinuousBatchingEngine::Options& options) {
  const auto workers = static_cast<int64_t>(options.workers.size());
  int64_t memory_bytes = 0;
  for (const models::WorkerDevice& device : options.workers) memory_bytes += device.memory_bytes;
  std::vector<LanguageModelReplica::Options> all;
  for (const models::WorkerDevice& device : options.workers) {
    LanguageModelReplica::Options& worker = all.emplace_back();
    worker.device = device;
    worker.step_loop = options.step_loop;
    worker.step_loop.worker = static_cast<int>(all.size()) - 1;
    if (device.kind != models::DeviceKind::kCpu) worker.step_loop.sampling_threads = SamplingThreads();
    if (memory_bytes > 0) {
      worker.step_loop.max_streams = PartOf(options.step_loop.max_streams, device.memory_bytes, memory_bytes);
      worker.step_loop.cache_bytes = device.memory_bytes;
      continue;
    }
    worker.step_loop.max_streams = PartOf(options.step_loop.max_streams, 1, workers);
    if (options.step_loop.cache_bytes > 0) {  // 0 means the size that the streams need
      worker.step_loop.cache_bytes = std::max<int64_t>(1, options.step_loop.cache_bytes / workers);
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<ContinuousBatchingEngine::DeviceCaches>> ContinuousBatchingEngine::CachesOf(
    const models::LanguageModelWeights& weights, absl::Span<const LanguageModelReplica::Options> workers) {
  std::vector<DeviceCaches> caches;
  for (const LanguageModelReplica::Options& worker : workers) {
    const models::LanguageModelInfo& there = weights.info(worker.device);
    LS_ASSIGN_OR_RETURN(const models::CachePages cache, StepLoop::CacheFor(there, worker.step_loop));
    const auto known = std::find_if(caches.begin(), caches.end(),
                                    [&there](const DeviceCaches& others) { return others.model == &there; });
    if (known == caches.end()) {
      caches.push_back({.model = &there, .smallest = cache});
    } else {
      known->smallest = Smaller(known->smallest, cache);
    }
  }
  return caches;
}

absl::StatusOr<std::unique_ptr<ContinuousBatchingEngine>> ContinuousBatchingEngine::Create(
    models::LanguageModelWeights weights, std::shared_ptr<const models::Tokenizer> tokenizer,
    std::unique_ptr<LanguageModelEngineObserver> observer, const Clock& clock, const Options& options) {
  LS_RETURN_IF_ERROR(CheckWorkers(options.workers));
  LS_RETURN_IF_ERROR(RequestQueue::Check(options.queue));
  LS_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Make(weights.info().vocabulary_size, std::move(tokenizer)));
  const std::vector<LanguageModelReplica::Options> workers = WorkerOptions(options);
  LS_ASSIGN_OR_RETURN(std::vector<DeviceCaches> caches, CachesOf(weights, workers));
  if (observer == nullptr) observer = std::make_unique<LanguageModelEngineObserver>();
  std::unique_ptr<ContinuousBatchingEngine> engine(new ContinuousBatchingEngine(
      std::move(weights), std::move(caches), std::move(vocabulary), std::move(observer), clock, options));
  for (const LanguageModelReplica::Options& worker : workers) {
    LS_RETURN_IF_ERROR(engine->workers_.Add(std::make_unique<LanguageModelReplica>(
        engine->weights_, engine->queue_, *engine->sessions_, clock, engine->states_, worker)));
  }
  return engine;
}

ContinuousBatchingEngine::ContinuousBatchingEngine(models::LanguageModelWeights weights,
                                                   std::vector<DeviceCaches> caches, Vocabulary vocabulary,
                                                   std::unique_ptr<LanguageModelEngineObserver> observer,
                                                   const Clock& clock, const Options& options)
    : weights_(std::move(weights)),
      caches_(std::move(caches)),
      vocabulary_(std::move(vocabulary)),
      observer_(std::move(observer)),
      clock_(clock),
      token_budgets_(options.token_budgets),
      sessions_(options.session_store != nullptr ? options.session_store
                                                 : std::make_shared<SessionStore>(clock, options.sessions)),
      queue_(options.queue, options.workers),
      states_(options.workers.size(), queue_, *observer_),
      workers_(queue_, clock),
      pages_(std::make_shared<WorkerPages>(workers_)),
      session_mover_(weights_.info(), *sessions_, pages_, workers_) {}

ContinuousBatchingEngine::~ContinuousBatchingEngine() {
  Drain(absl::InfinitePast());
  pages_->End();
}

absl::Status ContinuousBatchingEngine::Generate(GenerationRequest request,
                                                std::shared_ptr<GenerationListener> listener) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Job> job,
                      MakeJob(std::move(request), std::move(listener), vocabulary_, *observer_, *sessions_, pages_));
  return Submit(std::move(job));
}

absl::Status ContinuousBatchingEngine::Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Job> job,
                      MakeJob(std::move(request), std::move(listener), vocabulary_, *observer_, *sessions_, pages_));
  return Submit(std::move(job));
}

void ContinuousBatchingEngine::ExportSession(const SessionKey& key,
                                             std::function<void(absl::StatusOr<SessionArchive>)> done) {
  session_mover_.Export(key, std::move(done));
}

void ContinuousBatchingEngine::ImportSession(const SessionKey& key, SessionArchive archive,
                                             std::function<void(absl::Status)> done) {
  if (queue_.closed()) return done(ServerIsStopping());
  session_mover_.Import(key, std::move(archive), std::move(done));
}

SessionSize ContinuousBatchingEngine::LargestSession() const {
  SessionSize largest = {.tokens = sessions_->max_tokens(), .cache_bytes = 0};
  for (const DeviceCaches& caches : caches_) {
    const models::LanguageModelInfo& model = *caches.model;
    largest.cache_bytes = std::max(largest.cache_bytes, Bytes(PagesForStreams(model, 1), model.page_bytes));
  }
  return largest;
}

absl::Status ContinuousBatchingEngine::Submit(std::unique_ptr<Job> job) {
  if (!job->complete()) {
    for (const DeviceCaches& caches : caches_) {
      LS_RETURN_IF_ERROR(CheckFitsAlone(job->MaxTokens(), *caches.model, caches.smallest));
    }
  }
  const int64_t own = job->HeldTokens();
  const PositionInCall& position = job->context().position_in_call;
  const int64_t rest_of_call = position.index > 0 ? 0 : std::llround(static_cast<double>(own) / position.share) - own;
  absl::StatusOr<Budget::Share> tokens = Budget::Take(token_budgets_->Of(job->context().client), own, rest_of_call);
  if (!tokens.ok())
    return RefuseForNow(queue_.load(), std::string(tokens.status().message()), {.retry_after = kMinTimeForPrompts});
  job->resources.tokens = *std::move(tokens);
  job->times.submitted = clock_.Now();
  LS_RETURN_IF_ERROR(queue_.Push(std::move(job)));
  states_.ReportQueued();
  return absl::OkStatus();
}

LanguageModelEngineState ContinuousBatchingEngine::state() const { return states_.Sum(); }

}  // namespace longshort::core
