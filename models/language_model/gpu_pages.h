// The memory behind cache pages on a GPU: where they lie, and how they are read and written from the host.
//
//   window or segment page   models/gpu/pages.h says
//   open chunk page          for each layer: C rows of OpenRowFloats, float32 (models/gpu/cache_rows.h)
//
// Thread: the worker's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/model.h"

namespace longshort::models {

// Where the rows of a page lie: in `parts` pieces, one after the other, of `rows` rows each.
struct GpuPageLayout {
  int64_t parts = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;

  int64_t page_bytes() const { return parts * rows * row_bytes; }
};

// Pages of one kind, numbered from 0.
class GpuPages final {
 public:
  // The device must outlive it.
  GpuPages(GpuDevice& device, const GpuPageLayout& layout) : device_(device), layout_(layout) {}

  // What was there before is gone. Errors: those of GpuDevice; then there are no pages.
  absl::Status Allocate(int64_t pages);

  int64_t page_bytes() const { return layout_.page_bytes(); }
  // Of page 0, on the device.
  char* data() const { return memory_.data(); }

  // As LanguageModelBackend's.
  absl::Status Copy(PageId from, PageId to);
  absl::StatusOr<std::string> Read(PageId page, const PageRows& rows) const;
  absl::Status Write(PageId page, std::string_view bytes);

 private:
  char* PageAt(PageId page) const { return memory_.data() + page * page_bytes(); }

  GpuDevice& device_;
  GpuPageLayout layout_;
  GpuMemory memory_;
  GpuMemory staging_;  // pinned, one page
};

}  // namespace longshort::models
