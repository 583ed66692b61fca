#include "server/admission/delivery_threads.h"

#include <algorithm>
#include <utility>

namespace longshort {
namespace {

constexpr int64_t kCpusPerThread = 8;

}  // namespace

DeliveryThread::DeliveryThread() : thread_(&DeliveryThread::Work, this) {}

DeliveryThread::~DeliveryThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void DeliveryThread::Post(absl::AnyInvocable<void()> piece) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(piece));
    wake = std::exchange(asleep_, false);
  }
  if (wake) changed_.notify_one();
}

void DeliveryThread::Work() {
  std::vector<absl::AnyInvocable<void()>> pieces;
  std::unique_lock lock(mutex_);
  while (true) {
    while (posted_.empty() && !stop_) {
      asleep_ = true;
      changed_.wait(lock);
    }
    asleep_ = false;
    if (posted_.empty()) return;
    pieces.swap(posted_);
    lock.unlock();
    for (absl::AnyInvocable<void()>& piece : pieces) {
      piece();
      piece = nullptr;  // with what it holds
    }
    pieces.clear();
    lock.lock();
  }
}

DeliveryThreads::DeliveryThreads(int64_t cpus) {
  const int64_t count = std::max<int64_t>(1, cpus / kCpusPerThread);
  for (int64_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<DeliveryThread>());
}

DeliveryThread& DeliveryThreads::Next() { return *threads_[streams_++ % threads_.size()]; }

}  // namespace longshort
