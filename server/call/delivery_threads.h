// Threads that write the messages of streams, so that a worker continues with its next step meanwhile. Writing one
// message costs tens of microseconds in system calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/thread.h"

namespace longshort::server {

// Runs the tasks of some streams. Tasks must not block.
using DeliveryThread = TaskThread;

// Thread-safe, except for Start.
class DeliveryThreads final {
 public:
  // One for each eight of `cpus`, at least one.
  explicit DeliveryThreads(int64_t cpus) : threads_(std::max<int64_t>(1, cpus / 8)) {}

  // Tasks posted earlier wait until then. Errors: those of Thread::Start.
  absl::Status Start() {
    for (DeliveryThread& thread : threads_) LS_RETURN_IF_ERROR(thread.Start("a thread that writes to streams"));
    return absl::OkStatus();
  }

  // The thread for a new stream, in round-robin order.
  DeliveryThread& Next() { return threads_[streams_++ % threads_.size()]; }

 private:
  std::vector<DeliveryThread> threads_;
  std::atomic<uint64_t> streams_ = 0;
};

}  // namespace longshort::server
