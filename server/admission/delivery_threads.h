// Threads that bring what streams have generated on its way to the clients, so that the worker goes on with its next
// step meanwhile: to write one message costs tens of microseconds of system calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace longshort {

// One of them. Thread-safe.
class DeliveryThread final {
 public:
  DeliveryThread();
  // Runs what was posted, then ends the thread.
  ~DeliveryThread();

  // Has the thread run `piece`, which must not block: one after the other, in the order of the calls.
  void Post(absl::AnyInvocable<void()> piece);

 private:
  void Work();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<absl::AnyInvocable<void()>> posted_;
  bool asleep_ = false;
  bool stop_ = false;
  std::thread thread_;  // last, for it uses all else
};

// Thread-safe.
class DeliveryThreads final {
 public:
  // One for each eight of `cpus`, at least one.
  explicit DeliveryThreads(int64_t cpus);

  // The thread for a new stream: they take turns.
  DeliveryThread& Next();

 private:
  std::vector<std::unique_ptr<DeliveryThread>> threads_;
  std::atomic<uint64_t> streams_ = 0;
};

}  // namespace longshort
