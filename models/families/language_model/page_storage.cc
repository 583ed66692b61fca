#include "models/families/language_model/page_storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "ATen/Functions.h"
#include "absl/strings/str_format.h"

namespace longshort::models {
namespace {

// Maps memory for `count` pages, all zero; null if there is none. Bypasses the allocator, which would keep large freed
// blocks: each reload would leave the old cache's memory in use.
template <typename Element>
MappedMemory<Element> AllocatePages(int64_t count, int64_t page_bytes) {
  if (count > std::numeric_limits<int64_t>::max() / page_bytes) return nullptr;
  const size_t bytes = std::max<size_t>(count * page_bytes, 1);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return MappedMemory<Element>(static_cast<Element*>(memory), UnmapMemory{bytes});
}

absl::Status OutOfMemory(int64_t pages, int64_t page_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("no memory for %d cache pages of %d bytes; allow a smaller cache", pages, page_bytes));
}

void Convert(float from, float& to) { to = from; }
// Rounds to nearest, ties to even. The values of a model are finite.
void Convert(float from, cpu::BFloat16& to) {
  uint32_t bits;
  std::memcpy(&bits, &from, sizeof(bits));
  to.bits = static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Channels that WritePairs writes at once: as many as ValuePlace groups.
constexpr int64_t kPairedChannels = 2 * cpu::kLanes;

// Writes kPairedChannels channels of a row's key and value, from `channel` on, in words of two numbers.
void WritePairs(const float* key, const float* value, int64_t channel, int64_t row, int64_t padded_width,
                cpu::BFloat16* head_keys, cpu::BFloat16* head_values) {
  cpu::BFloat16 keys[kPairedChannels], values[kPairedChannels], words[kPairedChannels];
  for (int64_t c = 0; c < kPairedChannels; ++c) Convert(key[channel + c], keys[c]);
  for (int64_t c = 0; c < kPairedChannels; ++c) Convert(value[channel + c], values[c]);
  for (int64_t c = 0; c < kPairedChannels; c += 2) {
    std::memcpy(head_keys + cpu::KeyPlace<cpu::BFloat16>(channel + c, row), keys + c, 2 * sizeof(*keys));
  }
  for (int64_t c = 0; c < kPairedChannels; ++c) {
    words[cpu::ValuePlace<cpu::BFloat16>(kPairedChannels, /*row=*/0, c)] = values[c];
  }
  std::memcpy(head_values + row * padded_width + channel, words, sizeof(words));
}

}  // namespace

void UnmapMemory::operator()(void* memory) const { munmap(memory, bytes); }

template <typename Element>
void PageLayout::ClearOtherRows(const PageRows& rows, Element* page) const {
  const auto clear = [](Element* from, Element* to) { std::fill(from, to, Element{}); };
  if (rows.first == 0 && rows.end == cpu::kPageRows) return;
  for (int64_t layer = 0; layer < layers; ++layer) {
    Element* const part = page + layer * layer_elements();
    for (int64_t head = 0; head < heads; ++head) {
      Element* const keys = part + key_offset(head);
      for (int64_t row = 0; row < cpu::kPageRows; ++row) {
        if (row >= rows.first && row < rows.end) continue;
        for (int64_t c = 0; c < key_width(); ++c) keys[cpu::KeyPlace<Element>(c, row)] = Element{};
      }
      Element* const values = part + value_offset(head);
      clear(values, values + rows.first * padded_width());
      clear(values + rows.end * padded_width(), values + cpu::kPageRows * padded_width());
    }
  }
}

template void PageLayout::ClearOtherRows(const PageRows& rows, float* page) const;
template void PageLayout::ClearOtherRows(const PageRows& rows, cpu::BFloat16* page) const;

template <typename Element>
PageStorage<Element>::PageStorage(const PageLayout& layout) : layout_(layout) {
  zero_page_ = AllocatePages<Element>(1, page_bytes());
  if (zero_page_ == nullptr) throw std::bad_alloc();
}

template <typename Element>
absl::Status PageStorage<Element>::Allocate(int64_t pages) {
  pages_ = 0;
  memory_.reset();
  memory_ = AllocatePages<Element>(pages, page_bytes());
  if (memory_ == nullptr) return OutOfMemory(pages, page_bytes());
  pages_ = pages;
  return absl::OkStatus();
}

template <typename Element>
void PageStorage<Element>::WriteRow(PageId page, int64_t layer, int64_t row, const float* keys, const float* values) {
  WriteRowAt(memory_.get() + page * layout_.page_elements() + layer * layout_.layer_elements(), row, keys, values);
}

template <typename Element>
void PageStorage<Element>::WriteZeroRow(int64_t layer, const float* keys, const float* values) {
  for (int64_t row = 0; row < cpu::kPageRows; ++row) {
    WriteRowAt(zero_page_.get() + layer * layout_.layer_elements(), row, keys, values);
  }
}

template <typename Element>
void PageStorage<Element>::WriteRowAt(Element* layer_part, int64_t row, const float* keys, const float* values) const {
  const int64_t width = layout_.head_width, padded_width = layout_.padded_width();
  for (int64_t head = 0; head < layout_.heads; ++head) {
    Element* const head_keys = layer_part + layout_.key_offset(head);
    Element* const head_values = layer_part + layout_.value_offset(head);
    int64_t written = 0;
    if constexpr (cpu::kChannelsInPairs<Element>) {
      for (; written + kPairedChannels <= width; written += kPairedChannels) {
        WritePairs(keys + head * width, values + head * width, written, row, padded_width, head_keys, head_values);
      }
    }
    for (int64_t c = written; c < width; ++c) {
      Convert(keys[head * width + c], head_keys[cpu::KeyPlace<Element>(c, row)]);
    }
    const auto value = [&](int64_t c) -> Element& {
      return head_values[cpu::ValuePlace<Element>(padded_width, row, c)];
    };
    for (int64_t c = written; c < width; ++c) Convert(values[head * width + c], value(c));
    for (int64_t c = width; c < padded_width; ++c) value(c) = Element{};
  }
}

template class PageStorage<float>;
template class PageStorage<cpu::BFloat16>;

absl::Status OpenChunkStorage::Allocate(int64_t pages) {
  pages_ = 0;
  memory_.reset();
  memory_ = AllocatePages<float>(pages, page_bytes());
  if (memory_ == nullptr) return OutOfMemory(pages, page_bytes());
  pages_ = pages;
  return absl::OkStatus();
}

void OpenChunkStorage::ClearOtherRows(const PageRows& rows, char* page) const {
  const int64_t row_bytes = layout_.row_floats * static_cast<int64_t>(sizeof(float));
  for (int64_t layer = 0; layer < layout_.layers; ++layer) {
    char* const chunk = page + layer * layout_.chunk_size * row_bytes;
    std::memset(chunk, 0, rows.first * row_bytes);
    std::memset(chunk + rows.end * row_bytes, 0, (layout_.chunk_size - rows.end) * row_bytes);
  }
}

namespace {

// positions [count, heads, head_width], distance 0 first.
template <typename Element>
at::Tensor KernelLayout(const at::Tensor& positions) {
  const int64_t width = positions.size(2), even_width = cpu::EvenHeadWidth(width);
  const at::Tensor oldest_first =
      at::constant_pad_nd(positions.flip(0).permute({1, 2, 0}), {cpu::kBlock, cpu::kBlock, 0, even_width - width});
  if constexpr (!cpu::kChannelsInPairs<Element>) return oldest_first.contiguous();
  return oldest_first.to(at::kBFloat16).unflatten(1, {even_width / 2, 2}).transpose(2, 3).contiguous();
}

}  // namespace

template <typename Element>
DistanceTables<Element>::DistanceTables(const Decoder& decoder) {
  const at::Tensor window_table = decoder.WindowPositionTable(), chunk_table = decoder.ChunkPositionTable();
  for (const DecoderLayer& layer : decoder.layers) {
    const RelativePositions positions = layer.Positions(window_table, chunk_table);
    window_.push_back(KernelLayout<Element>(positions.window));
    chunk_.push_back(KernelLayout<Element>(positions.chunk));
  }
}

template <typename Element>
cpu::DistanceTable<Element> DistanceTables<Element>::View(const at::Tensor& tables, int64_t head) {
  return {.table = static_cast<const Element*>(tables.const_data_ptr()) + head * tables.stride(0),
          .count = tables.size(2) - 2 * cpu::kBlock};
}

template class DistanceTables<float>;
template class DistanceTables<cpu::BFloat16>;

}  // namespace longshort::models
