// Recorded calls on their way to the exporter: what comes while there is no room is dropped, and nobody waits.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/time/time.h"
#include "server/monitoring/call_trace.h"

namespace longshort {

class TraceQueue final {
 public:
  struct Options {
    // Spans that may wait, and that are exported at once. The spans of a call stay together: a call that has more by
    // itself is exported alone.
    int64_t most_spans = 2048;
    int64_t batch_spans = 512;
    // How long a batch that is not full waits for more.
    absl::Duration delay = absl::Seconds(5);
  };

  explicit TraceQueue(const Options& options) : options_(options) {}

  // False, and then the trace is gone, if there is no room or the queue is closed. Takes no longer than a push.
  bool Offer(std::unique_ptr<CallTrace> trace);

  // The next batch: waits until one is full, or something has waited for the delay, or the queue is closed. Empty once
  // it is closed and nothing is left. Thread: one at a time.
  std::vector<std::unique_ptr<CallTrace>> Take();

  // From now on nothing comes in; what waits can be taken at once.
  void Close();

 private:
  const Options options_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<CallTrace>> traces_;
  int64_t spans_ = 0;  // of them
  bool closed_ = false;
};

}  // namespace longshort
