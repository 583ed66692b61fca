// The memory of cache pages on the CPU, in the layout that the attention kernel reads.
//
//   window or segment page   for each layer and head: keys [even head width][16], then values [16][padded head width]
//   open chunk page          for each layer: C rows of x [d], key [d], value [d], projection logits [H*R], float32
//
// Element is float or cpu::BFloat16. Thread: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/families/language_model/decoder.h"
#include "models/model.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"

namespace longshort::models {

// Unmaps memory that was mapped from the system. Such memory is committed only where it is written, and returned at
// once.
struct UnmapMemory {
  size_t bytes = 0;
  void operator()(void* memory) const;
};
template <typename Element>
using MappedMemory = std::unique_ptr<Element[], UnmapMemory>;

// The layout of a page, in elements.
struct PageLayout {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t head_width = 0;

  int64_t key_width() const { return cpu::EvenHeadWidth(head_width); }
  int64_t padded_width() const { return cpu::PaddedHeadWidth(head_width); }
  int64_t head_elements() const { return (key_width() + padded_width()) * cpu::kPageRows; }
  int64_t layer_elements() const { return heads * head_elements(); }
  int64_t page_elements() const { return layers * layer_elements(); }
  template <typename Element>
  int64_t page_bytes() const {
    return page_elements() * static_cast<int64_t>(sizeof(Element));
  }
  // Offsets within a layer.
  int64_t key_offset(int64_t head) const { return head * head_elements(); }
  int64_t value_offset(int64_t head) const { return key_offset(head) + key_width() * cpu::kPageRows; }

  // Zeroes the elements of all other rows of a page, [page_elements].
  template <typename Element>
  void ClearOtherRows(const PageRows& rows, Element* page) const;
};

// Pages of one kind, numbered from 0, and a page of zero memory.
template <typename Element>
class PageStorage final {
 public:
  explicit PageStorage(const PageLayout& layout);

  // Discards the previous pages except the zero page. Errors: RESOURCE_EXHAUSTED.
  absl::Status Allocate(int64_t pages);
  int64_t pages() const { return pages_; }

  // A layer's part of page 0 (page n is n * page_elements() further), and of the zero page.
  const Element* FirstPage(int64_t layer) const { return memory_.get() + layer * layout_.layer_elements(); }
  const Element* ZeroPage(int64_t layer) const { return zero_page_.get() + layer * layout_.layer_elements(); }

  int64_t page_bytes() const { return layout_.template page_bytes<Element>(); }
  // Returns the memory of one page: page_bytes() bytes.
  char* PageMemory(PageId page) const { return reinterpret_cast<char*>(memory_.get()) + page * page_bytes(); }

  // Writes row `row` of a page: the keys and values of all heads, [d] each.
  void WriteRow(PageId page, int64_t layer, int64_t row, const float* keys, const float* values);
  // Writes this row to every row of the zero page.
  void WriteZeroRow(int64_t layer, const float* keys, const float* values);

 private:
  void WriteRowAt(Element* layer_part, int64_t row, const float* keys, const float* values) const;

  PageLayout layout_;
  int64_t pages_ = 0;
  MappedMemory<Element> memory_, zero_page_;
};

// The layout of a page for a chunk that is not yet full, in floats.
struct OpenChunkLayout {
  int64_t layers = 0;
  int64_t chunk_size = 0;  // C rows for each layer
  int64_t row_floats = 0;  // 3 d + H R

  int64_t page_bytes() const { return layers * chunk_size * row_floats * static_cast<int64_t>(sizeof(float)); }
};

// Open chunk pages, numbered from 0.
class OpenChunkStorage final {
 public:
  explicit OpenChunkStorage(const OpenChunkLayout& layout) : layout_(layout) {}

  absl::Status Allocate(int64_t pages);
  int64_t pages() const { return pages_; }
  int64_t page_bytes() const { return layout_.page_bytes(); }

  char* PageMemory(PageId page) const { return reinterpret_cast<char*>(memory_.get()) + page * page_bytes(); }

  // Zeroes all other rows of a page's bytes, [page_bytes].
  void ClearOtherRows(const PageRows& rows, char* page) const;

  // Row `row` of the chunk: x, key, value and logits, in this order.
  float* Row(PageId page, int64_t layer, int64_t row) {
    return memory_.get() + ((page * layout_.layers + layer) * layout_.chunk_size + row) * layout_.row_floats;
  }

 private:
  const OpenChunkLayout layout_;
  int64_t pages_ = 0;
  MappedMemory<float> memory_;
};

// Position terms of every layer and head, laid out for the attention kernel (DistanceTable).
template <typename Element>
class DistanceTables final {
 public:
  // Computes the positions of all layers. Their weights are not needed afterwards.
  explicit DistanceTables(const Decoder& decoder);

  cpu::DistanceTable<Element> Window(int64_t layer, int64_t head) const { return View(window_[layer], head); }
  cpu::DistanceTable<Element> Chunk(int64_t layer, int64_t head) const { return View(chunk_[layer], head); }

 private:
  static cpu::DistanceTable<Element> View(const at::Tensor& tables, int64_t head);

  std::vector<at::Tensor> window_, chunk_;  // of each layer: [heads, even width (/ 2), 64 + count + 64 (, 2)]
};

}  // namespace longshort::models
