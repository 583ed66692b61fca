// The engine of one loaded classifier: accepts requests to run one item, runs items in batches on its workers, and
// notifies their listeners.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/requests/request_context.h"
#include "models/classifier.h"

namespace longshort::core {

// Makes an item, when that takes work (decoding an image). A preparation thread calls it at most once; it owns its
// input. Its errors are the item's.
using ItemPreparation = std::function<absl::StatusOr<models::ClassifierItem>()>;

// Calls `preparation`. Errors: also RESOURCE_EXHAUSTED if memory ran out, INTERNAL if it threw anything else.
inline absl::StatusOr<models::ClassifierItem> PrepareItem(const ItemPreparation& preparation) {
  try {
    return preparation();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("memory ran out while preparing the item");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the item cannot be prepared: ", error.what()));
  }
}

struct ClassificationRequest {
  RequestContext context;
  // An item for the classifier, or a function that makes one.
  std::variant<models::ClassifierItem, ItemPreparation> item;
  // What to compute. All items of a batch have the same.
  models::ClassifierOutput output = models::ClassifierOutput::kLogits;
  // Memory that the request holds while it waits: the encoded image, or the ids.
  int64_t bytes = 0;
  // The approximate work to prepare this item, which its client is charged with when a thread begins it.
  absl::Duration preparation_work = absl::ZeroDuration();
  // The approximate work to prepare this item and the earlier ones of its call. An item is due this long after it
  // arrived, relative to the other items of its client. So calls take turns, and a small call does not wait for a large
  // one.
  absl::Duration work_until_prepared = absl::ZeroDuration();
};

// How long an item spent in each stage.
struct ClassificationTimings {
  absl::Time submitted = absl::InfinitePast();  // by the engine's clock; in the infinite past if it never was
  absl::Duration preparation;  // from submission until the item was prepared; 0 if it needed no preparation
  absl::Duration queue;        // from then until its batch began
  absl::Duration run;          // of the whole batch
};

struct ItemResult {
  // [ClassifierInfo::WidthOf(output)], all finite.
  std::vector<float> row;
  ClassificationTimings timings;
};

// Receives the result of one item, once, from an engine's or a preparation thread; must not block.
class ClassificationListener {
 public:
  virtual ~ClassificationListener() = default;
  // Errors of the item: what its preparation returned, INTERNAL if the model failed. Errors of the call: CANCELLED,
  // DEADLINE_EXCEEDED, UNAVAILABLE.
  virtual void OnFinished(absl::StatusOr<ItemResult> result) = 0;
};

// A snapshot of the engine, for metrics and refusals.
struct ClassifierEngineState {
  int64_t waiting_items = 0;  // not in a batch yet, those in preparation included
  int64_t waiting_bytes = 0;  // their ClassificationRequest::bytes
};

// The size and the duration of a batch.
struct BatchReport {
  int64_t items = 0;
  int64_t tokens = 0;  // of all documents; 0 for images
  int64_t multiply_adds = 0;
  absl::Duration run;
};

// Receives the engine's events, for metrics. Worker and preparation threads call it concurrently, except OnState; must
// not block. The default implementations do nothing.
class ClassifierEngineObserver {
 public:
  virtual ~ClassifierEngineObserver() = default;
  // An item was prepared, or failed to be; `preparation` is the work alone, without the wait for a thread.
  virtual void OnPrepared(absl::Duration /*preparation*/) {}
  // An item's batch begins; `waited` is the time since the item was ready.
  virtual void OnQueued(absl::Duration /*waited*/) {}
  // The model ran a batch, or failed at it.
  virtual void OnBatch(const BatchReport& /*batch*/) {}
  // The model failed on a batch. Each of its items is tried again alone, or ends.
  virtual void OnFailure(const absl::Status& /*failure*/) {}
  // A worker whose model threw has another one, or failed to build one and will try again.
  virtual void OnWorkerRebuilt(const absl::Status& /*status*/) {}
  // An item ended, with this status.
  virtual void OnEnded(const absl::Status& /*status*/) {}
  // The queue changed. Called under the engine's lock, also by submitting threads: the last call has the current state.
  virtual void OnState(const ClassifierEngineState& /*state*/) {}
};

// Thread-safe. The engine keeps a listener until it has called it. The owner must destroy the engine from a thread of
// its own, never from a call of a listener or of the observer. Drain it first if a request in flight may be its last
// owner.
class ClassifierEngine {
 public:
  virtual ~ClassifierEngine() = default;

  // If it returns OK, the engine will call the listener; after an error it does not. The caller has validated the item.
  // Errors: RESOURCE_EXHAUSTED if too many items, bytes, or too much work are queued (with a Refusal,
  // core/schedule/refusal.h), DEADLINE_EXCEEDED if the deadline cannot be met (the listener may also get this later),
  // UNAVAILABLE while draining.
  virtual absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) = 0;

  virtual ClassifierEngineState state() const = 0;

  // Refuses new items from now on and waits until the accepted ones have ended. At `deadline`, by the engine's clock,
  // ends the rest with UNAVAILABLE (within one batch, and one preparation). When it returns, every listener has been
  // called. May be called again, by any thread except the engine's: the earliest deadline counts.
  virtual void Drain(absl::Time deadline) = 0;
};

}  // namespace longshort::core
