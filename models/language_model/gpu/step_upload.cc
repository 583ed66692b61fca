#include "models/language_model/gpu/step_upload.h"

#include <algorithm>

#include "base/status_macros.h"

namespace longshort {

absl::Status StepUpload::Reserve(int64_t numbers) {
  const size_t bytes = numbers * sizeof(int64_t);
  if (memory_.bytes() >= bytes) return absl::OkStatus();
  LS_RETURN_IF_ERROR(device_.Synchronize());
  memory_ = {};
  LS_ASSIGN_OR_RETURN(memory_, GpuMemory::OnDevice(device_, bytes, GpuMemoryUse::kLibraryToo));
  return absl::OkStatus();
}

absl::Status StepUpload::Queue(absl::Span<const int64_t> numbers) {
  const size_t bytes = numbers.size() * sizeof(int64_t);
  Staging& staging = stagings_[turn_++ % stagings_.size()];
  if (staging.copied != nullptr) LS_RETURN_IF_ERROR(device_.Wait(*staging.copied));
  if (staging.memory.bytes() < bytes) {
    LS_ASSIGN_OR_RETURN(staging.memory, GpuMemory::Pinned(device_, 2 * bytes));
  }
  if (memory_.bytes() < bytes) LS_RETURN_IF_ERROR(Reserve(2 * static_cast<int64_t>(numbers.size())));
  std::copy(numbers.begin(), numbers.end(), staging.memory.as<int64_t>());
  LS_RETURN_IF_ERROR(device_.Copy(memory_.data(), staging.memory.data(), bytes));
  LS_ASSIGN_OR_RETURN(staging.copied, device_.Record());
  return absl::OkStatus();
}

}  // namespace longshort
