// The engine of one loaded language model: takes requests, runs them on its workers, tells their listeners.
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
#include "core/requests/generation_request.h"
#include "core/requests/scoring_request.h"
#include "core/session/session.h"
#include "core/session/session_store.h"

namespace longshort::core {

// A look at the engine, for metrics and refusals.
struct LanguageModelEngineState {
  int64_t queued_requests = 0;
  int64_t active_streams = 0;  // sequences that run
  // Cache pages, in bytes: held by running sequences; kept for reuse, until somebody wants them; free. Together they
  // are the cache.
  int64_t cache_bytes_used = 0;
  int64_t cache_bytes_idle = 0;
  int64_t cache_bytes_free = 0;
  // Of one page of each kind.
  models::CachePages cache_page_bytes = {};
  // The same in pages, and what has happened since the engine was made.
  CacheState cache = {};
};

// Hears what the engine does, for metrics. Called by the workers' threads, several at once but for OnState (and OnState
// by the one that makes the engine, and those that submit); must not block. An observer that overrides nothing ignores
// everything.
class LanguageModelEngineObserver {
 public:
  virtual ~LanguageModelEngineObserver() = default;
  // A request left the queue to run.
  virtual void OnQueued(absl::Duration /*waited*/) {}
  // The last token of a prompt or document was read; `prefill` is from the request's first step on.
  virtual void OnPrefilled(absl::Duration /*prefill*/, int64_t /*prompt_tokens*/) {}
  // The model ran a step of `rows` tokens, of all sequences together.
  virtual void OnStep(absl::Duration /*step*/, int64_t /*rows*/) {}
  // A generation's first token, and each later one, was sampled.
  virtual void OnFirstToken(absl::Duration /*since_submission*/) {}
  virtual void OnNextToken(absl::Duration /*since_previous*/) {}
  // A step of the model failed; its requests go on from their tokens.
  virtual void OnFailure(const absl::Status& /*failure*/) {}
  // A worker whose model was given up has another one, or could not get one and will try again.
  virtual void OnWorkerRebuilt(const absl::Status& /*status*/) {}
  // How things stand, of all workers together: after a request has come, before a step that more run in, after each
  // step, and when a worker's model has come or gone.
  virtual void OnState(const LanguageModelEngineState& /*state*/) {}
};

// Thread-safe. A listener stays with the engine until its last call. An engine is destroyed by a thread of its owner,
// never from a listener's or the observer's call: Drain before the last owner may be a request in flight.
class LanguageModelEngine {
 public:
  virtual ~LanguageModelEngine() = default;

  // On OK the listener will hear; on an error it never does. Requests were validated by the caller.
  // Errors: RESOURCE_EXHAUSTED if too much waits (with a Refusal, core/schedule/refusal.h), the requests in flight hold
  // too many prompt tokens, or the whole cache is too small for this one; DEADLINE_EXCEEDED if it cannot be done in
  // time (or the listener hears it later); UNAVAILABLE while draining; those of SessionStore::Open; FAILED_PRECONDITION
  // if the session holds other than the expected tokens; INVALID_ARGUMENT for an empty prompt behind no session.
  virtual absl::Status Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener) = 0;
  virtual absl::Status Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) = 0;

  // Its sessions, which other engines may share: to be listed and closed.
  virtual SessionStore& sessions() = 0;

  // Gives `done` the session as it is, which stays; nobody else can use it meanwhile. `done` is called once, at once or
  // later, by any thread; it must not block. Errors: NOT_FOUND, ABORTED while a request has it; INTERNAL if the model
  // cannot read its pages.
  virtual void ExportSession(const SessionKey& key, std::function<void(absl::StatusOr<SessionArchive>)> done) = 0;
  // Begins a session that was exported by an engine of the same model, or lets one go on to it, as
  // SessionStore::Import does. `done` as above. Errors, and then nothing has changed: those of SessionStore::Import;
  // DATA_LOSS if the archive cannot be a session of this model; UNAVAILABLE while draining; INTERNAL if the model
  // cannot write its pages.
  virtual void ImportSession(const SessionKey& key, SessionArchive archive, std::function<void(absl::Status)> done) = 0;
  // What an archive may be.
  virtual SessionSize LargestSession() const = 0;

  virtual LanguageModelEngineState state() const = 0;

  // Refuses new requests from now on, waits until what is there has ended, and ends the rest with UNAVAILABLE at
  // `deadline` by the engine's clock (within one step). When it returns, every listener has had its last call. May be
  // called again, by any thread but the engine's: the earliest deadline counts.
  virtual void Drain(absl::Time deadline) = 0;
};

}  // namespace longshort::core
