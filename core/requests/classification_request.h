// What a client asks the engine to do with a classifier, one item at a time, and how it hears of it.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/requests/request_context.h"
#include "models/classifier.h"

namespace longshort::core {

// Makes an item that takes work to make (decodes an image). Called at most once, by a preparation thread; keeps alive
// what it reads. Its errors are the item's.
using ItemPreparation = std::function<absl::StatusOr<models::ClassifierItem>()>;

// Calls it. Errors: also RESOURCE_EXHAUSTED if it ran out of memory, INTERNAL if it threw anything else.
absl::StatusOr<models::ClassifierItem> PrepareItem(const ItemPreparation& preparation);

struct ClassificationRequest {
  RequestContext context;
  // An item that the classifier takes, or what makes one.
  std::variant<models::ClassifierItem, ItemPreparation> item;
  // Memory that the request holds while it waits: the encoded image, or the ids.
  int64_t bytes = 0;
  // About what it takes to prepare this item and those of its call before it. Among one client's items, this is when it
  // is due after it came: so calls take turns, and one that asks for little does not wait for one that asks for much.
  absl::Duration work_until_prepared = absl::ZeroDuration();
};

// Where an item's time went.
struct ClassificationTimings {
  absl::Time submitted = absl::InfinitePast();  // by the engine's clock; in the infinite past if it never was
  absl::Duration preparation;                   // from submission until it was an item; 0 for what was one already
  absl::Duration queue;                         // from then until its batch began
  absl::Duration run;                           // of the whole batch
};

struct ItemScores {
  // [classes], all finite.
  std::vector<float> logits;
  ClassificationTimings timings;
};

// Hears of one item, once, from the engine's thread or one that prepares; must not block.
class ClassificationListener {
 public:
  virtual ~ClassificationListener() = default;
  // Errors of the item: what its preparation returned, INTERNAL if the model failed. Errors of the call: CANCELLED,
  // DEADLINE_EXCEEDED, UNAVAILABLE.
  virtual void OnFinished(absl::StatusOr<ItemScores> scores) = 0;
};

}  // namespace longshort::core
