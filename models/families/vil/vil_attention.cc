#include "models/families/vil/vil_attention.h"

#include <cmath>
#include <optional>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/ops/full_attention/full_attention.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {
namespace {

// [batch, n, heads * head_dim] -> [batch, heads, n, head_dim], and the inverse.
at::Tensor SplitHeads(const at::Tensor& rows, int64_t heads) { return rows.unflatten(2, {heads, -1}).transpose(1, 2); }
at::Tensor JoinHeads(const at::Tensor& by_head) { return by_head.transpose(1, 2).flatten(2); }

double QueryScale(const at::Tensor& rows, int64_t heads) {
  return 1.0 / std::sqrt(static_cast<double>(rows.size(2)) / static_cast<double>(heads));
}

// The biases for the scores of all pairs of tokens: [heads, g + patches, g + patches].
at::Tensor FullBiases(const VilFullAttention& attention) {
  at::Tensor patches = BiasOfPairs(attention.bias_table, attention.bias_index);
  if (!attention.global_biases.defined()) return patches;
  const int64_t heads = patches.size(0), count = patches.size(1), globals = attention.global_biases.size(2);
  const at::Tensor to_patches = attention.global_biases.select(0, 0).unsqueeze(2).expand({heads, globals, count});
  const at::Tensor to_globals = attention.global_biases.select(0, 1).unsqueeze(1).expand({heads, count, globals});
  return at::cat({at::cat({attention.between_globals, to_patches}, 2), at::cat({to_globals, patches}, 2)}, 1);
}

}  // namespace

at::Tensor VilSparseAttention::operator()(const at::Tensor& rows, const at::Tensor& added,
                                          ItemAttention& attention) const {
  const std::vector<at::Tensor> projected = query_key_value(rows).chunk(3, 2);
  const at::Tensor& queries = projected[0];
  const at::Tensor keys = full_norm(projected[1]), values = full_norm(projected[2]);
  const int64_t count = side * side;
  const auto of_global = [&](const at::Tensor& all) { return all.narrow(1, 0, global_tokens); };
  const auto of_patches = [&](const at::Tensor& all) { return all.narrow(1, global_tokens, count); };
  const RowKeyValues global = {.keys = of_global(keys), .values = of_global(values)};
  const RowKeyValues patches = {.keys = of_patches(keys), .values = of_patches(values)};

  const at::Tensor attended =
      attention.AttendInGrids({.heads = heads,
                               .queries = of_patches(queries),
                               .tokens = patches,
                               .shared = SharedVectors(rows, global, patches, attention)},
                              {.height = side, .width = side}, {.side = window_size}, bias, global_tokens);
  if (global_tokens > 0) {
    // The global token reads the patches' output, as keys and values.
    const auto one = [](const at::Tensor& all) { return all.select(1, 0); };
    attention.AttendToRows({.heads = heads,
                            .queries = one(queries),
                            .own = {.keys = one(keys), .values = one(values)},
                            .rows = {.keys = of_patches(attended), .values = of_patches(attended)},
                            .attended = one(attended)});
  }
  return output(attended, added);
}

void VilSparseAttention::MoveBy(TensorMove& move) {
  move(query_key_value, dynamic_projection, full_norm, output);
  move.AsTheyAre(landmark_norm, bias.table, bias.index);  // kernels read them
  if (bias.table.defined() && bias.table.is_cpu())
    bias.for_kernel = WithVectorBehind(BiasOfPairs(bias.table, bias.index));
}

RowKeyValues VilSparseAttention::SharedVectors(const at::Tensor& rows, const RowKeyValues& global,
                                               const RowKeyValues& patches, ItemAttention& attention) const {
  if (!dynamic_projection.defined()) return global;
  // The projection covers all tokens, so its rows must have the layout of the keys.
  const RowKeyValues shared =
      attention.Landmarks({.heads = heads,
                           .logits = dynamic_projection(rows).narrow(1, global_tokens, side * side),
                           .tokens = patches,
                           .key_norm = landmark_norm,
                           .value_norm = landmark_norm},
                          global_tokens);
  if (global_tokens > 0) {
    shared.keys.narrow(1, 0, global_tokens).copy_(global.keys);
    shared.values.narrow(1, 0, global_tokens).copy_(global.values);
  }
  return shared;
}

at::Tensor VilFullAttention::operator()(const at::Tensor& rows, const at::Tensor& added) const {
  const at::Tensor all = query_key_value(rows);
  if (CanAttendFully(all)) {
    const at::Tensor of_patches =
        bias_table.defined() && !kernel_bias.defined() ? BiasForKernel(bias_table) : kernel_bias;
    const FullBias of_scores{.patches = of_patches, .of_globals = global_biases, .between_globals = between_globals};
    return output(AttendFully(all, heads, of_scores), added);
  }
  const std::vector<at::Tensor> projected = all.chunk(3, 2);
  const std::optional<at::Tensor> bias =
      bias_table.defined() ? std::make_optional(FullBiases(*this).unsqueeze(0)) : std::nullopt;
  const auto operand = [&](int64_t index) { return SplitHeads(projected[index], heads); };
  const at::Tensor attended =
      at::scaled_dot_product_attention(operand(0), operand(1), operand(2), bias,
                                       /*dropout_p=*/0.0, /*is_causal=*/false, QueryScale(rows, heads));
  return output(JoinHeads(attended), added);
}

void VilFullAttention::MoveBy(TensorMove& move) {
  move(query_key_value, output, bias_table, global_biases, between_globals);
  move.AsTheyAre(bias_index);
  if (bias_table.defined() && bias_table.is_cpu()) kernel_bias = BiasForKernel(bias_table);
}

}  // namespace longshort::models
