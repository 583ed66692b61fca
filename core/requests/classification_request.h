// A request to run one item through a classifier, and the listener that receives its result.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
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

}  // namespace longshort::core
