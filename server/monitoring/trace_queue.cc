#include "server/monitoring/trace_queue.h"

#include <utility>

namespace longshort {

bool TraceQueue::Offer(std::unique_ptr<CallTrace> trace) {
  const int64_t spans = trace->spans();
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || spans_ + spans > options_.most_spans) return false;
    // Once for each batch: waking a thread costs as much as answering a short call.
    wake = traces_.empty() || (spans_ < options_.batch_spans && spans_ + spans >= options_.batch_spans);
    spans_ += spans;
    traces_.push_back(std::move(trace));
  }
  if (wake) changed_.notify_one();
  return true;
}

std::vector<std::unique_ptr<CallTrace>> TraceQueue::Take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !traces_.empty(); });
  changed_.wait_for(lock, absl::ToChronoNanoseconds(options_.delay),
                    [this] { return closed_ || spans_ >= options_.batch_spans; });
  std::vector<std::unique_ptr<CallTrace>> batch;
  int64_t taken = 0;
  while (!traces_.empty() && (batch.empty() || taken + traces_.front()->spans() <= options_.batch_spans)) {
    taken += traces_.front()->spans();
    batch.push_back(std::move(traces_.front()));
    traces_.pop_front();
  }
  spans_ -= taken;
  return batch;
}

void TraceQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

}  // namespace longshort
