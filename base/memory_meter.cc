#include "base/memory_meter.h"

namespace longshort {

absl::Status MemoryMeter::Take() {
  constexpr int64_t kSlice = 64 << 10;  // a budget is shared by all threads
  const int64_t taken = (held_ + kSlice - 1) / kSlice * kSlice;
  status_.Update(share_->Grow(others_ + taken));
  if (status_.ok()) taken_ = taken;
  return status_;
}

}  // namespace longshort
