#include "models/language_model/gpu/step_upload.h"

#include <algorithm>

#include "base/status_macros.h"
#include "models/kernels/cuda/query_tiles.h"

namespace longshort {
namespace {

// A tile reads a block's keys once for all of its rows; a single row has more of the GPU to itself.
constexpr int64_t kLeastTileRows = 8;

}  // namespace

absl::Status StepUpload::Queue(const StepPlan& plan) {
  const cuda::QueryTiles rows = cuda::TilesOf(plan.Of(plan.row_slices), plan.Of(plan.segment_starts), kLeastTileRows);
  const auto planned = static_cast<int64_t>(plan.numbers.size());
  first_single_ = planned;
  single_count_ = static_cast<int64_t>(rows.rows.size());
  tile_count_ = static_cast<int64_t>(rows.tiles.size()) / 2;
  const int64_t all = planned + single_count_ + 2 * tile_count_;

  Staging& staging = stagings_[turn_++ % stagings_.size()];
  if (staging.copied != nullptr) LS_RETURN_IF_ERROR(device_.Wait(*staging.copied));
  LS_RETURN_IF_ERROR(Grow(staging, all));
  int64_t* to = std::copy(plan.numbers.begin(), plan.numbers.end(), staging.memory.as<int64_t>());
  to = std::copy(rows.rows.begin(), rows.rows.end(), to);
  std::copy(rows.tiles.begin(), rows.tiles.end(), to);
  LS_RETURN_IF_ERROR(device_.Copy(numbers(), staging.memory.data(), all * sizeof(int64_t)));
  LS_ASSIGN_OR_RETURN(staging.copied, device_.Record());
  return absl::OkStatus();
}

absl::Status StepUpload::Grow(Staging& staging, int64_t numbers) {
  const size_t bytes = numbers * sizeof(int64_t);
  if (staging.memory.bytes() < bytes) {
    LS_ASSIGN_OR_RETURN(staging.memory, GpuMemory::Pinned(device_, 2 * bytes));
  }
  if (memory_.bytes() >= bytes) return absl::OkStatus();
  LS_RETURN_IF_ERROR(device_.Synchronize());
  memory_ = {};
  LS_ASSIGN_OR_RETURN(memory_, GpuMemory::OnDevice(device_, 2 * bytes, GpuMemoryUse::kLibraryToo));
  return absl::OkStatus();
}

}  // namespace longshort
