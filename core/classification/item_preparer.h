// Prepares the items of a queue on a pool of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/classification/item_queue.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/fair_pool.h"

namespace longshort::core {

// Prepares items only as far ahead as the queue allows: prepared images take far more memory than encoded ones.
//
// Thread-safe. It must exist until the queue is over, because tasks of the pool use it until then.
class ItemPreparer final {
 public:
  // The arguments must outlive this.
  ItemPreparer(std::shared_ptr<FairPool> pool, ItemQueue& items, ClassifierEngineObserver& observer, const Clock& clock)
      : pool_(std::move(pool)), owner_(pool_->NewOwner()), items_(items), observer_(observer), clock_(clock) {}

  // Submits a task for each item that may be prepared now.
  void PrepareAhead() { Submit(items_.ReservePreparations()); }

 private:
  void Submit(int64_t tasks);
  // The task: prepares the next item, if there is one. Returns how long that took.
  absl::Duration PrepareNext();
  // Makes the job's item. Errors: the status to end the job with.
  absl::Status Prepare(ClassificationJob& job);

  const std::shared_ptr<FairPool> pool_;
  const std::string owner_;
  ItemQueue& items_;
  ClassifierEngineObserver& observer_;
  const Clock& clock_;
};

}  // namespace longshort::core
