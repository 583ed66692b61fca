// The CLS row of a document, for document_layer_body.h.
#pragma once

#include <cstdint>

#include "models/ops/document_layer/document_layer.h"
#include "models/ops/document_layer/row_lanes_body.h"
#include "models/ops/products/row_products_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// One row in the first lane of a block.
void Spread(const float* row, int64_t width, float* block) {
  for (int64_t c = 0; c < width; ++c) {
    Fill(block + c * kBlockRows, kLanes, 0.0f);
    block[c * kBlockRows] = row[c];
  }
}

void Gather(const float* block, int64_t width, float* row) {
  for (int64_t c = 0; c < width; ++c) row[c] = block[c * kBlockRows];
}

void ProjectCls(const DocumentLayer& layer, const float* cls, bool normalized, float* query, float* key, float* value,
                float* scratch) {
  const int64_t width = layer.width;
  float* const row = Take(scratch, layer.block_floats());
  float* const mapped = Take(scratch, layer.block_floats());
  Spread(cls, width, row);
  if (normalized && !layer.norms_after) NormalizeRows(layer.norm1, width, kLanes, row, row);
  const auto project = [&](const RowMap& map, float* to) {
    MapRows<false>(map, width, width, kLanes, row, mapped);
    Gather(mapped, width, to);
  };
  project(layer.query, query);
  project(layer.key, key);
  project(layer.value, value);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(layer.head_width()));
  for (int64_t c = 0; c < width; ++c) query[c] *= scale;
}

void AddToCls(const DocumentLayer& layer, const float* query, const float* keys, const float* values, int64_t rows,
              bool first, float* sums, float* scratch) {
  const int64_t width = layer.head_width(), lanes = PaddedHeadWidth(rows);
  float* const scores = scratch;
  float* const sum_of = sums + layer.heads;
  float* const mixed = sum_of + layer.heads;
  for (int64_t head = 0; head < layer.heads; ++head) {
    const int64_t channel = head * width;
    Multiply<false>(1, width, lanes, {query + channel, 0, 1}, keys + channel * kBlockRows, kBlockRows, scores,
                    kBlockRows);
    const float before = first ? -__builtin_inff() : sums[head];
    float maximum = before;
    for (int64_t i = 0; i < rows; ++i) maximum = scores[i] > maximum ? scores[i] : maximum;
    const float rescale = first ? 0.0f : __builtin_expf(before - maximum);
    Lanes all{}, x, y;
    for (int64_t lane = 0; lane < lanes; lane += kLanes) {
      Load(scores + lane, x);
      x = x - maximum;
      Exponential(x);
      x = Between(0, static_cast<int32_t>(rows - lane), x, 0.0f);
      Store(x, scores + lane);
      all += x;
    }
    sums[head] = maximum;
    sum_of[head] = (first ? 0.0f : sum_of[head] * rescale) + Sum(all);
    for (int64_t c = channel; c < channel + width; ++c) {
      Lanes products{};
      for (int64_t lane = 0; lane < lanes; lane += kLanes) {
        Load(values + c * kBlockRows + lane, x);
        Load(scores + lane, y);
        products += x * y;
      }
      mixed[c] = (first ? 0.0f : mixed[c] * rescale) + Sum(products);
    }
  }
}

void FinishCls(const DocumentLayer& layer, const float* query, const float* key, const float* value, const float* sums,
               int64_t count, float* cls, float* scratch) {
  const int64_t width = layer.head_width(), stride = ClsSumsFloats(layer);
  float* const attended = Take(scratch, layer.block_floats());
  float* const hidden = Take(scratch, layer.block_floats());
  Fill(attended, layer.block_floats(), 0.0f);
  for (int64_t head = 0; head < layer.heads; ++head) {
    float own = 0;
    for (int64_t c = head * width; c < (head + 1) * width; ++c) own += query[c] * key[c];
    float maximum = own;
    for (int64_t i = 0; i < count; ++i) maximum = sums[i * stride + head] > maximum ? sums[i * stride + head] : maximum;
    float sum = __builtin_expf(own - maximum);
    for (int64_t c = head * width; c < (head + 1) * width; ++c) attended[c * kBlockRows] = value[c] * sum;
    for (int64_t i = 0; i < count; ++i) {
      const float* const of_piece = sums + i * stride;
      const float scale = __builtin_expf(of_piece[head] - maximum);
      sum += of_piece[layer.heads + head] * scale;
      for (int64_t c = head * width; c < (head + 1) * width; ++c)
        attended[c * kBlockRows] += of_piece[2 * layer.heads + c] * scale;
    }
    for (int64_t c = head * width; c < (head + 1) * width; ++c) attended[c * kBlockRows] /= sum;
  }
  Spread(cls, layer.width, hidden);
  FinishBlock(layer, attended, 1, hidden, scratch);
  Gather(hidden, layer.width, cls);
}

}  // namespace

extern const DocumentLayerKernels kDocumentLayerKernels = {CollectBlock, FinishLandmarks, AttendBlock, FinishBlock,
                                                           ProjectCls,   NormalizeRow,    AddToCls,    FinishCls};

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
