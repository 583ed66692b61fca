// The memory of cache pages on a GPU: layout, and access from the host.
//
//   window or segment page   as in models/device/pages.h
//   open chunk page          for each layer: C rows of OpenRowFloats, float32
//   (models/ops/causal_attention/cache_rows.h)
//
// Thread: the worker's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/device/gpu_device.h"
#include "models/device/gpu_memory.h"
#include "models/model.h"

namespace longshort::models {

// The layout of a page: `parts` consecutive parts of `rows` rows each.
struct GpuPageLayout {
  int64_t parts = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;

  int64_t page_bytes() const { return parts * rows * row_bytes; }
};

// Pages of one kind, numbered from 0.
class GpuPages final {
 public:
  // The device must outlive this object.
  GpuPages(GpuDevice& device, const GpuPageLayout& layout) : device_(device), layout_(layout) {}

  // Discards the previous pages. Errors: those of GpuDevice; then there are no pages.
  absl::Status Allocate(int64_t pages);

  int64_t page_bytes() const { return layout_.page_bytes(); }
  // The device address of page 0.
  char* data() const { return memory_.data(); }

  // As in LanguageModelBackend.
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
