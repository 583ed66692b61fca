// Which items of a classifier run together next.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/time/time.h"
#include "core/engine/classification_job.h"

namespace longshort {

// First come, first served: a batch begins with the item that waited longest and takes, in their order, those that can
// run with it. Images run with images of the same size, token sequences with any. Nothing is waited for: a batch is
// what is there when the worker is free.
//
// Thread: none of its own; the engine's mutex guards it. Never calls a listener.
class BatchFormer {
 public:
  struct Options {
    // Items of one batch. Larger batches use wide machines better and make everybody in them wait for the whole.
    int64_t max_batch_size = 32;
    // Tokens of one batch, over all its documents: bounds a batch's memory. A longer item runs alone.
    int64_t max_batch_tokens = 65536;
  };

  explicit BatchFormer(const Options& options) : options_(options) {}

  // REQUIRES: job->prepared().
  void Add(std::unique_ptr<ClassificationJob> job) { waiting_.push_back(std::move(job)); }

  // The next batch; empty if nothing waits.
  ClassificationJobs TakeBatch();
  // Those that nobody waits for any more at `now`.
  ClassificationJobs TakeAbandoned(absl::Time now) { return longshort::TakeAbandoned(waiting_, now); }
  ClassificationJobs TakeAll() { return longshort::TakeAll(waiting_); }

  int64_t size() const { return static_cast<int64_t>(waiting_.size()); }

 private:
  const Options options_;
  std::deque<std::unique_ptr<ClassificationJob>> waiting_;  // in the order in which they became items
};

// Tokens of all documents of an item; 0 for an image.
int64_t TokensOf(const ClassifierItem& item);

}  // namespace longshort
