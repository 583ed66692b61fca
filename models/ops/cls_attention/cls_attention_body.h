// The body of cls_attention.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/softmax_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// products[0] = one . own, products[1 + i] = one . rows[i]
void DotRows(int64_t width, int64_t count, const float* one, const float* own, const HeadRows<const float>& rows,
             float* products) {
  products[0] = Dot(width, one, own);
  for (int64_t i = 0; i < count; ++i) products[1 + i] = Dot(width, one, rows.data + i * rows.stride);
}

// sum = factors[0] * own + the sum of factors[1 + i] * rows[i]
void SumRows(int64_t width, int64_t count, const float* factors, const float* own, const HeadRows<const float>& rows,
             float* sum) {
  for (int64_t c = 0; c < width; ++c) sum[c] = factors[0] * own[c];
  Multiply<true>(1, count, width, {factors + 1, 0, 1}, rows.data, rows.stride, sum, width);
}

// own = factors[0] * one, rows[i] = factors[1 + i] * one
void SpreadRow(int64_t width, int64_t count, const float* factors, const float* one, float* own,
               const HeadRows<float>& rows) {
  for (int64_t c = 0; c < width; ++c) own[c] = factors[0] * one[c];
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) rows.data[i * rows.stride + c] = factors[1 + i] * one[c];
  }
}

}  // namespace

void AttendFromCls(const ClsHead& head, float* weights, float* attended) {
  const int64_t seen = 1 + head.rows, padded = ClsWeights(head.rows);
  DotRows(head.head_width, head.rows, head.query, head.own_key, head.keys, weights);
  Fill(weights + seen, padded - seen, -__builtin_inff());
  Softmax(weights, padded / kLanes);
  SumRows(head.head_width, head.rows, weights, head.own_value, head.values, attended);
}

void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch) {
  const int64_t width = head.head_width, seen = 1 + head.rows, padded = ClsWeights(head.rows);
  DotRows(width, head.rows, gradient.attended, head.own_value, head.values, scratch);
  Fill(scratch + seen, padded - seen, 0.0f);
  DifferentiateSoftmax(gradient.weights, padded / kLanes, scratch);
  SumRows(width, head.rows, scratch, head.own_key, head.keys, gradient.query);
  SpreadRow(width, head.rows, scratch, head.query, gradient.own_key, gradient.keys);
  SpreadRow(width, head.rows, gradient.weights, gradient.attended, gradient.own_value, gradient.values);
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
