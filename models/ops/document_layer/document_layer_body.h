// The body of document_layer.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/document_layer/document_layer.h"
#include "models/ops/document_layer/row_lanes_body.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/row_norms_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

void NormalizeRow(const RowNorm& norm, int64_t width, const float* x, float* y) {
  Normalize(norm, 1, width, {x, width}, {y, width});
}

inline constexpr float kHidden = -__builtin_inff();
inline constexpr bool kBoth[] = {true, false};

int64_t RowsOf(const LayerRows& rows, int64_t block) { return Min(rows.rows - block * kBlockRows, kBlockRows); }

// out = (kAdd: +=) map of a block's rows; the widths are those of the map.
template <bool kAdd>
void MapRows(const RowMap& map, int64_t out, int64_t in, int64_t lanes, const float* rows, float* to) {
  Multiply<kAdd>(out, in, lanes, {map.weight, in, 1}, rows, kBlockRows, to, kBlockRows, map.bias);
}

// The landmarks' sums of some blocks.
struct LandmarkSums {
  float *maximum, *sum, *keys, *values;

  LandmarkSums(const DocumentLayer& layer, float* sums)
      : maximum(sums),
        sum(maximum + layer.projection_columns()),
        keys(sum + layer.projection_columns()),
        values(keys + layer.width * layer.padded_rank()) {}
};

// Replaces `logits` [rows][columns] by e^(logit - maximum), where the maximum is that of all blocks so far.
void AddWeights(const DocumentLayer& layer, int64_t rows, float* logits, const LandmarkSums& sums) {
  const int64_t columns = layer.projection_columns();
  for (int64_t column = 0; column < columns; column += kLanes) {
    Lanes before, maximum, x, sum, rescale;
    Load(sums.maximum + column, before);
    maximum = before;
    for (int64_t row = 0; row < rows; ++row) {
      Load(logits + row * columns + column, x);
      maximum = Larger(x, maximum);
    }
    rescale = before - maximum;
    Exponential(rescale);
    Load(sums.sum + column, sum);
    sum = sum * rescale;
    for (int64_t row = 0; row < rows; ++row) {
      Load(logits + row * columns + column, x);
      x = x - maximum;
      Exponential(x);
      Store(x, logits + row * columns + column);
      sum += x;
    }
    Store(maximum, sums.maximum + column);
    Store(sum, sums.sum + column);
    Store(rescale, logits + rows * columns + column);  // for the caller
  }
}

void CollectBlock(const DocumentLayer& layer, const LayerRows& rows, int64_t block, bool first, float* sums_of_blocks,
                  float* scratch) {
  const int64_t count = RowsOf(rows, block), lanes = PaddedHeadWidth(count), offset = block * layer.block_floats();
  float* const normed = Take(scratch, layer.block_floats());
  float* const logits = scratch;
  const float* input = rows.hidden + offset;
  if (!layer.norms_after) {
    NormalizeRows(layer.norm1, layer.width, lanes, input, normed);
    input = normed;
  }
  float* const keys = rows.keys + offset;
  float* const values = rows.values + offset;
  MapRows<false>(layer.key, layer.width, layer.width, lanes, input, keys);
  MapRows<false>(layer.value, layer.width, layer.width, lanes, input, values);
  if (layer.window_norm.gain != nullptr) {
    NormalizeRows(layer.window_norm, layer.width, lanes, keys, keys);
    NormalizeRows(layer.window_norm, layer.width, lanes, values, values);
  }
  if (layer.rank == 0) return;

  const LandmarkSums sums(layer, sums_of_blocks);
  const int64_t columns = layer.projection_columns(), padded_rank = layer.padded_rank(), width = layer.head_width();
  if (first) {
    Fill(sums.maximum, columns, -__FLT_MAX__);
    Fill(sums.sum, columns, 0.0f);
    Fill(sums.keys, 2 * layer.width * padded_rank, 0.0f);
  }
  Multiply<false>(count, layer.width, columns, {input, 1, kBlockRows}, layer.projection, columns, logits, columns);
  AddWeights(layer, count, logits, sums);
  for (int64_t head = 0; head < layer.heads; ++head) {
    const float* const weights = logits + head * layer.rank;
    for (const bool of_keys : kBoth) {
      const float* const of = (of_keys ? keys : values) + head * width * kBlockRows;
      float* const mixed = (of_keys ? sums.keys : sums.values) + head * width * padded_rank;
      if (!first) {
        for (int64_t lane = 0; lane < padded_rank; lane += kLanes) {
          Lanes rescale, x;
          Load(weights + count * columns + lane, rescale);
          for (int64_t c = 0; c < width; ++c) {
            Load(mixed + c * padded_rank + lane, x);
            x = x * rescale;
            Store(x, mixed + c * padded_rank + lane);
          }
        }
      }
      Multiply<true>(width, count, padded_rank, {of, kBlockRows, 1}, weights, columns, mixed, padded_rank);
    }
  }
}

void FinishLandmarks(const DocumentLayer& layer, const LayerRows& rows, const float* sums, int64_t count) {
  const int64_t columns = layer.projection_columns(), padded_rank = layer.padded_rank(), width = layer.head_width();
  const int64_t stride = LandmarkSumsFloats(layer), before = rows.shared - layer.rank;
  for (int64_t t = 0; t < layer.rank; ++t) {
    float* const key = rows.shared_keys + (before + t) * layer.width;
    float* const value = rows.shared_values + (before + t) * layer.width;
    Fill(key, layer.width, 0.0f);
    Fill(value, layer.width, 0.0f);
    for (int64_t head = 0; head < layer.heads; ++head) {
      const int64_t column = head * layer.rank + t;
      float maximum = kHidden, sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        const float of_piece = sums[i * stride + column];
        maximum = of_piece > maximum ? of_piece : maximum;
      }
      for (int64_t i = 0; i < count; ++i)
        sum += sums[i * stride + columns + column] * __builtin_expf(sums[i * stride + column] - maximum);
      for (int64_t i = 0; i < count; ++i) {
        const float scale = __builtin_expf(sums[i * stride + column] - maximum) / sum;
        const float* const keys = sums + i * stride + 2 * columns + head * width * padded_rank + t;
        const float* const values = keys + layer.width * padded_rank;
        for (int64_t c = 0; c < width; ++c) {
          key[head * width + c] += keys[c * padded_rank] * scale;
          value[head * width + c] += values[c * padded_rank] * scale;
        }
      }
    }
    NormalizeRow(layer.shared_norm, layer.width, key, key);
    NormalizeRow(layer.shared_norm, layer.width, value, value);
  }
}

// Lanes of a block that see the keys [first_key, end_key) together.
struct LaneGroup {
  int64_t first_lane = 0, lanes = 0;
  int64_t first_segment = 0, end_segment = 0;
  int64_t first_key = 0, end_key = 0;
};

// The group of `lanes` lanes from `first_lane` of the block on; `segment` is one at or before its first.
LaneGroup GroupAt(const LayerRows& rows, int64_t first_row, int64_t first_lane, int64_t lanes, int64_t segment) {
  const int64_t begin = first_row + first_lane, end = Min(begin + lanes, rows.rows);
  while (rows.segments[segment].end_query <= begin) ++segment;
  LaneGroup group{first_lane, PaddedHeadWidth(end - begin), segment, segment, rows.segments[segment].first_key, 0};
  while (group.end_segment < rows.segment_count && rows.segments[group.end_segment].first_query < end) {
    group.end_key = Max(group.end_key, rows.segments[group.end_segment].end_key);
    ++group.end_segment;
  }
  return group;
}

// Hides from each lane the keys that its segment does not see. `scores` [keys][kBlockRows], from the group's lane on.
void HideUnseen(const LayerRows& rows, int64_t first_row, const LaneGroup& group, float* scores) {
  if (group.end_segment - group.first_segment <= 1) return;
  const int64_t first_query = first_row + group.first_lane;
  int64_t begin_segment = group.first_segment, end_segment = group.first_segment;
  for (int64_t key = group.first_key; key < group.end_key; ++key) {
    while (begin_segment < group.end_segment && rows.segments[begin_segment].end_key <= key) ++begin_segment;
    end_segment = Max(end_segment, begin_segment);
    while (end_segment < group.end_segment && rows.segments[end_segment].first_key <= key) ++end_segment;
    const bool seen = begin_segment < end_segment;
    const int64_t begin = seen ? rows.segments[begin_segment].first_query - first_query : 0;
    // Lanes behind the document's end see what the last row sees.
    const int64_t end = !seen                              ? 0
                        : end_segment == group.end_segment ? group.lanes
                                                           : rows.segments[end_segment - 1].end_query - first_query;
    for (int64_t lane = 0; lane < group.lanes; lane += kLanes) {
      if (begin <= lane && end >= lane + kLanes) continue;
      float* const at = scores + (key - group.first_key) * kBlockRows + lane;
      Lanes x;
      Load(at, x);
      x = Between(static_cast<int32_t>(begin - lane), static_cast<int32_t>(end - lane), x, kHidden);
      Store(x, at);
    }
  }
}

// work(first, count, data, offset): the keys first .. first + count - 1 of one block, which begin at data, counted from
// the group's first.
template <typename Work>
LS_INLINE void ForEachKeyBlock(const DocumentLayer& layer, const LaneGroup& group, const float* blocks,
                               const Work& work) {
  for (int64_t key = group.first_key; key < group.end_key;) {
    const int64_t block = key / kBlockRows, end = Min((block + 1) * kBlockRows, group.end_key);
    work(blocks + block * layer.block_floats() + key % kBlockRows, end - key, key - group.first_key);
    key = end;
  }
}

// Attention of one head and one group. `scores` [shared + keys][kBlockRows], of which the shared ones are there.
void AttendGroup(const DocumentLayer& layer, const LayerRows& rows, int64_t first_row, int64_t head,
                 const LaneGroup& group, const float* queries, float* scores, float* attended) {
  const int64_t width = layer.head_width(), channel = head * width;
  float* const shared_scores = scores + group.first_lane;
  float* const key_scores = shared_scores + rows.shared * kBlockRows;
  ForEachKeyBlock(layer, group, rows.keys + channel * kBlockRows,
                  [&](const float* keys, int64_t count, int64_t offset) {
                    Multiply<false>(count, width, group.lanes, {keys, 1, kBlockRows}, queries + group.first_lane,
                                    kBlockRows, key_scores + offset * kBlockRows, kBlockRows);
                  });
  HideUnseen(rows, first_row, group, key_scores);
  const int64_t seen = rows.shared + group.end_key - group.first_key;
  float sums[kBlockRows];
  ExponentialsOfColumns(seen, group.lanes, kBlockRows, shared_scores, sums);

  float* const to = attended + channel * kBlockRows + group.first_lane;
  Multiply<false>(width, rows.shared, group.lanes, {rows.shared_values + channel, 1, layer.width}, shared_scores,
                  kBlockRows, to, kBlockRows);
  ForEachKeyBlock(layer, group, rows.values + channel * kBlockRows,
                  [&](const float* values, int64_t count, int64_t offset) {
                    Multiply<true>(width, count, group.lanes, {values, kBlockRows, 1}, key_scores + offset * kBlockRows,
                                   kBlockRows, to, kBlockRows);
                  });
  DivideColumns(width, group.lanes, kBlockRows, sums, to);
}

void AttendBlock(const DocumentLayer& layer, const LayerRows& rows, int64_t block, float* attended, float* scratch) {
  const int64_t first_row = block * kBlockRows, count = RowsOf(rows, block), lanes = PaddedHeadWidth(count);
  const int64_t width = layer.head_width();
  float* const normed = Take(scratch, layer.block_floats());
  float* const queries = Take(scratch, layer.block_floats());
  float* const scores = scratch;
  const float* input = rows.hidden + block * layer.block_floats();
  if (!layer.norms_after) {
    NormalizeRows(layer.norm1, layer.width, lanes, input, normed);
    input = normed;
  }
  MapRows<false>(layer.query, layer.width, layer.width, lanes, input, queries);
  ScaleRows(layer.width, lanes, 1.0f / __builtin_sqrtf(static_cast<float>(width)), queries);

  // Wide windows: all lanes see about the same keys, and longer rows make better products.
  int64_t segment = 0;
  for (int64_t step = rows.segment_count; step > 0; step /= 2) {
    while (segment + step < rows.segment_count && rows.segments[segment + step].first_query <= first_row)
      segment += step;
  }
  LaneGroup groups[kBlockRows / kLanes];
  groups[0] = GroupAt(rows, first_row, 0, kBlockRows, segment);
  int64_t group_count = 1;
  const int64_t together = groups[0].end_key - groups[0].first_key;
  const LaneGroup alone = GroupAt(rows, first_row, 0, kLanes, segment);
  if (4 * together > 5 * (alone.end_key - alone.first_key)) {
    group_count = 0;
    for (int64_t lane = 0; lane < lanes; lane += kLanes)
      groups[group_count++] = GroupAt(rows, first_row, lane, kLanes, segment);
  }
  for (int64_t head = 0; head < layer.heads; ++head) {
    const float* const of_head = queries + head * width * kBlockRows;
    Multiply<false>(rows.shared, width, lanes, {rows.shared_keys + head * width, layer.width, 1}, of_head, kBlockRows,
                    scores, kBlockRows);
    for (int64_t i = 0; i < group_count; ++i)
      AttendGroup(layer, rows, first_row, head, groups[i], of_head, scores, attended);
  }
}

void FinishBlock(const DocumentLayer& layer, const float* attended, int64_t rows, float* hidden, float* scratch) {
  const int64_t lanes = PaddedHeadWidth(rows), width = layer.width, inner_width = layer.feed_forward_width;
  float* const normed = Take(scratch, layer.block_floats());
  float* const inner = scratch;
  MapRows<true>(layer.output, width, width, lanes, attended, hidden);
  const float* input = hidden;
  if (layer.norms_after) {
    NormalizeRows(layer.norm1, width, lanes, hidden, hidden);
  } else {
    NormalizeRows(layer.norm2, width, lanes, hidden, normed);
    input = normed;
  }
  MapRows<false>(layer.feed_forward_in, inner_width, width, lanes, input, inner);
  GeluRows(inner_width, lanes, inner);
  MapRows<true>(layer.feed_forward_out, width, inner_width, lanes, inner, hidden);
  if (layer.norms_after) NormalizeRows(layer.norm2, width, lanes, hidden, hidden);
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)

#include "models/ops/document_layer/document_layer_cls_body.h"
