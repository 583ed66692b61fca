// Threads that write what streams have generated to the clients, so that the worker goes on with its next step
// meanwhile: writing one message costs tens of microseconds of system calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace longshort::server {

// Runs the pieces of work of some streams; none of them may block.
using DeliveryThread = TaskThread;

// Thread-safe, except for Start.
class DeliveryThreads final {
 public:
  // One for each eight of `cpus`, at least one.
  explicit DeliveryThreads(int64_t cpus) : threads_(std::max<int64_t>(1, cpus / 8)) {}

  // Pieces that are posted before wait until then. Errors: as Thread::Start.
  absl::Status Start() {
    for (DeliveryThread& thread : threads_) LS_RETURN_IF_ERROR(thread.Start("a thread that writes to streams"));
    return absl::OkStatus();
  }

  // The thread for a new stream: they take turns.
  DeliveryThread& Next() { return threads_[streams_++ % threads_.size()]; }

 private:
  std::vector<DeliveryThread> threads_;
  std::atomic<uint64_t> streams_ = 0;
};

}  // namespace longshort::server
