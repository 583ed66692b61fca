#include "models/families/language_model/gpu_pages.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::models {

absl::Status GpuPages::Allocate(int64_t pages) {
  LS_RETURN_IF_ERROR(device_.Synchronize());
  memory_ = {};
  if (pages == 0) return absl::OkStatus();
  if (pages > std::numeric_limits<int64_t>::max() / page_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(pages, " pages of ", page_bytes(), " bytes exceed the memory of any GPU"));
  }
  LS_ASSIGN_OR_RETURN(staging_, GpuMemory::Pinned(device_, page_bytes()));
  LS_ASSIGN_OR_RETURN(memory_, GpuMemory::OnDevice(device_, pages * page_bytes(), GpuMemoryUse::kKernels));
  return absl::OkStatus();
}

absl::Status GpuPages::Copy(PageId from, PageId to) {
  return from == to ? absl::OkStatus() : device_.Copy(PageAt(to), PageAt(from), page_bytes());
}

absl::StatusOr<std::string> GpuPages::Read(PageId page, const PageRows& rows) const {
  LS_RETURN_IF_ERROR(device_.Copy(staging_.data(), PageAt(page), page_bytes()));
  LS_RETURN_IF_ERROR(device_.Synchronize());
  std::string bytes(page_bytes(), '\0');
  for (int64_t part = 0; part < layout_.parts; ++part) {
    const int64_t first = (part * layout_.rows + rows.first) * layout_.row_bytes;
    std::copy_n(staging_.data() + first, (rows.end - rows.first) * layout_.row_bytes, bytes.data() + first);
  }
  return bytes;
}

absl::Status GpuPages::Write(PageId page, std::string_view bytes) {
  std::memcpy(staging_.data(), bytes.data(), bytes.size());
  LS_RETURN_IF_ERROR(device_.Copy(PageAt(page), staging_.data(), page_bytes()));
  return device_.Synchronize();
}

}  // namespace longshort::models
