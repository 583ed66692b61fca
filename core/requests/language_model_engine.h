// The engine of one loaded language model: accepts requests, runs them on its workers, and notifies their listeners.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/cache/paged_cache.h"
#include "core/requests/language_model_requests.h"
#include "core/session/session.h"
#include "core/session/session_store.h"

namespace longshort::core {

// A snapshot of the engine, for metrics and refusals.
struct LanguageModelEngineState {
  int64_t queued_requests = 0;
  int64_t active_streams = 0;  // sequences that run
  // Cache pages, in bytes: held by running sequences; kept for reuse until they are evicted; free. Their sum is the
  // cache.
  int64_t cache_bytes_used = 0;
  int64_t cache_bytes_idle = 0;
  int64_t cache_bytes_free = 0;
  // Bytes of one page of each kind.
  models::CachePages cache_page_bytes = {};
  // The same in pages, and counters since the engine was created.
  CacheState cache = {};
};

// Receives the engine's events, for metrics. The workers' threads call it concurrently, except OnState. The threads
// that create the engine and submit requests call OnState, too. Must not block. The default implementations do nothing.
class LanguageModelEngineObserver {
 public:
  virtual ~LanguageModelEngineObserver() = default;
  // A request left the queue to run.
  virtual void OnQueued(absl::Duration /*waited*/) {}
  // The last token of a prompt or document was read; `prefill` is the time since the request's first step.
  virtual void OnPrefilled(absl::Duration /*prefill*/, int64_t /*prompt_tokens*/) {}
  // The model ran a step of `rows` tokens, of all sequences together.
  virtual void OnStep(absl::Duration /*step*/, int64_t /*rows*/) {}
  // A generation's first token, and each later one, was sampled.
  virtual void OnFirstToken(absl::Duration /*since_submission*/) {}
  virtual void OnNextToken(absl::Duration /*since_previous*/) {}
  // A step of the model failed; its requests continue from their tokens.
  virtual void OnFailure(const absl::Status& /*failure*/) {}
  // A worker whose model was discarded has another one, or failed to build one and will try again.
  virtual void OnWorkerRebuilt(const absl::Status& /*status*/) {}
  // The state of all workers: after a request arrived, before a step with more sequences, after each step, and when a
  // worker got or lost its model.
  virtual void OnState(const LanguageModelEngineState& /*state*/) {}
};

// Thread-safe. The engine keeps a listener until its last call. The owner must destroy the engine from a thread of its
// own, never from a call of a listener or of the observer. Drain it first if a request in flight may be its last owner.
class LanguageModelEngine {
 public:
  virtual ~LanguageModelEngine() = default;

  // If it returns OK, the engine will call the listener; after an error it does not. The caller has validated the
  // request. Errors: RESOURCE_EXHAUSTED if the queue is full (with a Refusal, core/schedule/refusal.h), the requests in
  // flight hold too many prompt tokens, or the request does not fit the whole cache; DEADLINE_EXCEEDED if the deadline
  // cannot be met (the listener may also get this later); UNAVAILABLE while draining; those of SessionStore::Open;
  // FAILED_PRECONDITION if the session does not hold the expected number of tokens; INVALID_ARGUMENT for an empty
  // prompt without a session's tokens.
  virtual absl::Status Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener) = 0;
  virtual absl::Status Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) = 0;

  // Its sessions, which other engines may share, for listing and closing.
  virtual SessionStore& sessions() = 0;

  // Passes the session to `done`; it remains in the store. No other call can use it meanwhile. `done` is called once,
  // now or later, by any thread; it must not block. Errors: NOT_FOUND, ABORTED while a request has it; INTERNAL if the
  // model cannot read its pages.
  virtual void ExportSession(const SessionKey& key, std::function<void(absl::StatusOr<SessionArchive>)> done) = 0;
  // Creates a session from one that an engine of the same model exported, or continues an existing one to it, as
  // SessionStore::Import does. `done` as above. Errors, all of which leave the store unchanged: those of
  // SessionStore::Import; DATA_LOSS if the archive is not a valid session of this model; UNAVAILABLE while draining;
  // INTERNAL if the model cannot write its pages.
  virtual void ImportSession(const SessionKey& key, SessionArchive archive, std::function<void(absl::Status)> done) = 0;
  // The largest archive that ImportSession can accept.
  virtual SessionSize LargestSession() const = 0;

  virtual LanguageModelEngineState state() const = 0;

  // Refuses new requests from now on and waits until the accepted ones have ended. At `deadline`, by the engine's
  // clock, ends the rest with UNAVAILABLE (within one step). When it returns, every listener has had its last call.
  // May be called again, by any thread except the engine's: the earliest deadline counts.
  virtual void Drain(absl::Time deadline) = 0;
};

}  // namespace longshort::core
