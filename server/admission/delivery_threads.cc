#include "server/admission/delivery_threads.h"

#include <algorithm>

#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr int64_t kCpusPerThread = 8;

}  // namespace

DeliveryThreads::DeliveryThreads(int64_t cpus) {
  const int64_t count = std::max<int64_t>(1, cpus / kCpusPerThread);
  for (int64_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<DeliveryThread>());
}

absl::Status DeliveryThreads::Start() {
  for (const auto& thread : threads_) LS_RETURN_IF_ERROR(thread->Start("a thread that writes to streams"));
  return absl::OkStatus();
}

DeliveryThread& DeliveryThreads::Next() { return *threads_[streams_++ % threads_.size()]; }

}  // namespace longshort
