// Counts the events in a mix of requests. A mix without faults would prove little.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_engine.h"

namespace longshort {

// The one that only classifiers have, by its name in Happenings::List.
inline constexpr const char* kSharedBatches = "shared batches";

// Counted by all engines of a mix. Thread-safe.
struct Happenings {
  using Count = std::atomic<int64_t>;

  Count prefix_hits = 0;
  Count reused_tokens = 0;
  Count evictions = 0;       // of pages, chains' ends and parked sequences
  Count session_calls = 0;   // that went on with a session
  Count moved_sessions = 0;  // exported by one engine, imported by another or the same
  Count resumed = 0;         // parked sequences, of sessions and of paused requests
  Count pauses = 0;          // of requests that ran or waited
  Count failed_steps = 0;    // and batches
  Count rebuilt_workers = 0;
  Count missing_replicas = 0;  // that a worker, or a swap, did not get
  Count swaps = 0;
  Count cancelled = 0;       // requests, and tried again
  Count shared_steps = 0;    // of more rows than one
  Count shared_batches = 0;  // of several items

  // By name, in this order.
  std::vector<std::pair<std::string, int64_t>> List() const;
};

// Each counts for one engine. `happenings` must outlive it.
std::unique_ptr<core::LanguageModelEngineObserver> CountingObserver(Happenings& happenings);
std::unique_ptr<core::ClassifierEngineObserver> CountingClassificationObserver(Happenings& happenings);

}  // namespace longshort
