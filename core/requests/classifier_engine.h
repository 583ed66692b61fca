// The engine of one loaded classifier: takes items, runs them in batches on a worker, tells their listeners.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/requests/classification_request.h"

namespace longshort::core {

// A look at the engine, for metrics and refusals.
struct ClassifierEngineState {
  int64_t waiting_items = 0;  // not in a batch yet, those in preparation included
  int64_t waiting_bytes = 0;  // their ClassificationRequest::bytes
};

// What a batch was, and what it took.
struct BatchReport {
  int64_t items = 0;
  int64_t tokens = 0;  // of all documents; 0 for images
  int64_t multiply_adds = 0;
  absl::Duration run;
};

// Hears what the engine does, for metrics. Called by the workers' threads and those that prepare, several at once, but
// for OnState; must not block. An observer that overrides nothing ignores everything.
class ClassifierEngineObserver {
 public:
  virtual ~ClassifierEngineObserver() = default;
  // An item was prepared, or could not be; `preparation` is the work alone, without the wait for a thread.
  virtual void OnPrepared(absl::Duration /*preparation*/) {}
  // An item's batch begins; `waited` since it was an item.
  virtual void OnQueued(absl::Duration /*waited*/) {}
  // The model ran a batch, or failed at it.
  virtual void OnBatch(const BatchReport& /*batch*/) {}
  // The model failed at a batch; its items are tried again, each alone, or ended.
  virtual void OnFailure(const absl::Status& /*failure*/) {}
  // A worker whose model threw has another one, or could not get one and will try again.
  virtual void OnWorkerRebuilt(const absl::Status& /*status*/) {}
  // An item ended, with this status.
  virtual void OnEnded(const absl::Status& /*status*/) {}
  // What waits changed. Called under the engine's lock, by any thread that submits, too: the last call tells what is.
  virtual void OnState(const ClassifierEngineState& /*state*/) {}
};

// Thread-safe. A listener stays with the engine until its call. An engine is destroyed by a thread of its owner, never
// from a listener's or the observer's call: Drain before the last owner may be a request in flight.
class ClassifierEngine {
 public:
  virtual ~ClassifierEngine() = default;

  // On OK the listener will hear; on an error it never does. Items were validated by the caller.
  // Errors: RESOURCE_EXHAUSTED if too many items wait, too many bytes, or too much work (with a Refusal,
  // core/schedule/refusal.h), DEADLINE_EXCEEDED if it cannot be done in time (or the listener hears it later),
  // UNAVAILABLE while draining.
  virtual absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) = 0;

  virtual ClassifierEngineState state() const = 0;

  // Refuses new items from now on, waits until what is there has ended, and ends the rest with UNAVAILABLE at
  // `deadline` by the engine's clock (within one batch, and one preparation). When it returns, every listener has
  // heard. May be called again, by any thread but the engine's: the earliest deadline counts.
  virtual void Drain(absl::Time deadline) = 0;
};

}  // namespace longshort::core
