// Causal long-short attention over cache pages, for consecutive queries and some heads. The op that is served: it
// equals the reference op (models/ops/causal_attention/causal_attention.h) up to rounding.
//
// Keys are folded in blocks of 64 on the absolute grid, left to right (memory, segment, window). So the bits of a
// query's result depend on its history only, not on the other queries of the run. The op allocates no memory, and reads
// the keys once per four queries.
#pragma once

#include <cstdint>

#include "models/ops/rows/instruction_set.h"

namespace longshort::models::cpu {

// Keys in a block.
inline constexpr int64_t kBlock = 64;
// Keys in a page; a block spans 4 pages. Smaller pages waste less at both ends of a stream. 16 is the width of an
// AVX-512 vector.
inline constexpr int64_t kPageRows = 16;
// Queries that share one pass over the keys.
inline constexpr int64_t kQueriesPerTile = 4;

// A value stored as the upper half of a float32.
struct BFloat16 {
  uint16_t bits = 0;
};

// Whether two channels share 32 bits, as bfloat16 numbers do. A shift then widens the first channel to float32, and a
// mask the second. That is half the work of widening them separately. The functions below return an element's place.
template <typename Element>
inline constexpr bool kChannelsInPairs = sizeof(Element) < sizeof(float);

// A head's keys are padded with a channel of zeros if the width is odd.
constexpr int64_t EvenHeadWidth(int64_t head_width) { return head_width + head_width % 2; }

template <typename Element>
constexpr int64_t KeyPlace(int64_t channel, int64_t row) {
  if (!kChannelsInPairs<Element>) return channel * kPageRows + row;
  const int64_t second = channel & 1;
  return (channel - second) * kPageRows + row * 2 + second;
}

// In a group of 32 channels, channel c is next to channel c + 16. A remaining group of 16 channels is not paired.
template <typename Element>
constexpr int64_t ValuePlace(int64_t padded_width, int64_t row, int64_t channel) {
  const int64_t in_group = channel & (2 * kLanes - 1), group = channel - in_group;
  if (!kChannelsInPairs<Element> || group + 2 * kLanes > padded_width) return row * padded_width + channel;
  const int64_t second = in_group >= kLanes ? 1 : 0;
  return row * padded_width + group + (in_group - second * kLanes) * 2 + second;
}

// `stride` as in DistanceTable.
template <typename Element>
constexpr int64_t DistancePlace(int64_t stride, int64_t channel, int64_t column) {
  if (!kChannelsInPairs<Element>) return channel * stride + column;
  const int64_t second = channel & 1;
  return (channel - second) * stride + column * 2 + second;
}

// Consecutive pages of keys on the absolute grid: page `first + i` is page ids[i], or the zero page if ids[i] is
// negative. Within a page, for each head:
//   keys    [EvenHeadWidth][kPageRows]     channel-major, so that the keys of a page are adjacent (KeyPlace)
//   values  [kPageRows][PaddedHeadWidth]   (ValuePlace)
template <typename Element>
struct KeyPages {
  int64_t first = 0;
  int64_t count = 0;
  const int64_t* ids = nullptr;        // [count]
  const Element* pages = nullptr;      // the layer's part of page 0
  const Element* zero_page = nullptr;  // the layer's part of the zero page
  int64_t page_elements = 0;           // from one page to the next
  int64_t key_offset = 0;              // of the first head, within the layer's part
  int64_t value_offset = 0;
  int64_t head_elements = 0;  // from one head to the next
};

// Position terms, largest distance first, padded with a block of zeros on both sides so that 64 of them can be read at
// any block of keys.
//   table  [heads][EvenHeadWidth][kBlock + count + kBlock]: column kBlock + count-1-n holds distance n (DistancePlace)
template <typename Element>
struct DistanceTable {
  const Element* table = nullptr;
  int64_t count = 0;

  int64_t stride() const { return count + 2 * kBlock; }
};

template <typename Element>
struct AttentionRun {
  // Shape of the model.
  int64_t head_width = 0;
  int64_t window_length = 0;
  int64_t chunk_size = 0;
  int64_t chunk_rank = 0;

  // Number of adjacent heads, here and below: at least one.
  int64_t heads = 1;
  // Queries of these heads, scaled by 1/sqrt(head_width). Row i, at stream position `position + i`, begins at queries +
  // i * stride.
  const float* queries = nullptr;
  float* output = nullptr;  // [count] rows of heads * head_width floats, with the same stride
  int64_t stride = 0;
  int64_t count = 0;
  int64_t position = 0;
  const float* window_bias = nullptr;    // [heads][head_width], added to queries that meet window keys
  const float* relative_bias = nullptr;  // [heads][head_width], added to queries that meet window positions

  // Compressed vectors first_vector .. segment_vector-1 are read from `memory`; those from segment_vector to the
  // query's own chunk are read from `segment`. All queries of a run lie in one segment.
  int64_t first_vector = 0;
  int64_t segment_vector = 0;
  KeyPages<Element> memory;
  KeyPages<Element> segment;
  KeyPages<Element> window;
  DistanceTable<Element> chunk_distances;
  DistanceTable<Element> window_distances;

  // [AttentionScratchFloats(head_width, heads)], used during this call only.
  float* scratch = nullptr;
};

constexpr int64_t AttentionScratchFloats(int64_t head_width, int64_t heads) {
  return heads * kQueriesPerTile * (2 * EvenHeadWidth(head_width) + PaddedHeadWidth(head_width) + 2);
}

// Element is float or BFloat16. REQUIRES: the processor supports `set`.
template <typename Element>
void Attend(const AttentionRun<Element>& run, InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
