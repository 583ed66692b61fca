#include "models/families/vil/vil_attention.h"

#include <cmath>
#include <optional>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/families/vil/vil_config.h"
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

// The same for scaled_dot_product_attention, which on GPUs copies a bias whose rows are not aligned.
at::Tensor ScoreBias(const VilFullAttention& attention) {
  const at::Tensor biases = FullBiases(attention).unsqueeze(0);
  const int64_t tokens = biases.size(3);
  const at::Tensor aligned = at::zeros({1, biases.size(1), tokens, VilBiasStride(tokens)}, biases.options());
  return aligned.narrow(3, 0, tokens).copy_(biases);
}

}  // namespace

at::Tensor VilSparseAttention::Attended(const at::Tensor& rows, ItemAttention& attention) const {
  const at::Tensor all = joined.defined() ? joined(rows) : query_key_value(rows);
  const int64_t width = output.inputs(), count = side * side;
  const std::vector<at::Tensor> projected = all.narrow(2, 0, 3 * width).chunk(3, 2);
  const at::Tensor& queries = projected[0];
  const RowKeyValues keys_values =
      attention.NormBoth(full_norm, full_norm, {.keys = projected[1], .values = projected[2]});
  at::Tensor logits;
  if (joined.defined()) {
    logits = all.narrow(2, 3 * width, dynamic_projection.outputs());
  } else if (dynamic_projection.defined()) {
    logits = dynamic_projection(rows);
  }
  const auto of_patches = [&](const at::Tensor& tokens) { return tokens.narrow(1, global_tokens, count); };

  const at::Tensor attended = attention.AttendInGrids(
      {.heads = heads,
       .queries = of_patches(queries),
       .tokens = {.keys = of_patches(keys_values.keys), .values = of_patches(keys_values.values)},
       .shared = SharedVectors(logits, keys_values, attention)},
      {.height = side, .width = side}, {.side = window_size}, bias, global_tokens);
  if (global_tokens > 0) {
    // The global token reads the patches' output, as keys and values.
    const auto one = [](const at::Tensor& all) { return all.select(1, 0); };
    attention.AttendToRows({.heads = heads,
                            .queries = one(queries),
                            .own = {.keys = one(keys_values.keys), .values = one(keys_values.values)},
                            .rows = {.keys = of_patches(attended), .values = of_patches(attended)},
                            .attended = one(attended)});
  }
  return attended;
}

void VilSparseAttention::MoveBy(TensorMove& move) {
  move(query_key_value, dynamic_projection, output);
  move.AsTheyAre(full_norm, landmark_norm, bias.table, bias.index);  // kernels read them
  if (dynamic_projection.defined()) joined = move.Join({&query_key_value, &dynamic_projection});
  if (bias.table.defined() && bias.table.is_cpu())
    bias.for_kernel = WithVectorBehind(BiasOfPairs(bias.table, bias.index));
}

RowKeyValues VilSparseAttention::SharedVectors(const at::Tensor& logits, const RowKeyValues& keys_values,
                                               ItemAttention& attention) const {
  const auto of_global = [&](const at::Tensor& all) { return all.narrow(1, 0, global_tokens); };
  if (!logits.defined()) return {.keys = of_global(keys_values.keys), .values = of_global(keys_values.values)};
  // The projection covers all tokens, so its rows must have the layout of the keys.
  const auto of_patches = [&](const at::Tensor& all) { return all.narrow(1, global_tokens, side * side); };
  RowKeyValues global;
  if (global_tokens > 0) global = {.keys = keys_values.keys.select(1, 0), .values = keys_values.values.select(1, 0)};
  return attention.Landmarks(
      {.heads = heads,
       .logits = of_patches(logits),
       .tokens = {.keys = of_patches(keys_values.keys), .values = of_patches(keys_values.values)},
       .key_norm = landmark_norm,
       .value_norm = landmark_norm},
      global);
}

at::Tensor VilFullAttention::Attended(const at::Tensor& rows) const {
  const at::Tensor all = query_key_value(rows);
  if (CanAttendFully(all)) {
    const at::Tensor of_patches =
        bias_table.defined() && !kernel_bias.defined() ? BiasForKernel(bias_table) : kernel_bias;
    const FullBias of_scores{.patches = of_patches, .of_globals = global_biases, .between_globals = between_globals};
    return AttendFully(all, heads, of_scores);
  }
  const std::vector<at::Tensor> projected = all.chunk(3, 2);
  std::optional<at::Tensor> bias;
  if (bias_table.defined()) bias = score_bias.defined() ? score_bias : FullBiases(*this).unsqueeze(0);
  const auto operand = [&](int64_t index) { return SplitHeads(projected[index], heads); };
  const at::Tensor attended =
      at::scaled_dot_product_attention(operand(0), operand(1), operand(2), bias,
                                       /*dropout_p=*/0.0, /*is_causal=*/false, QueryScale(rows, heads));
  return JoinHeads(attended);
}

void VilFullAttention::MoveBy(TensorMove& move) {
  move(query_key_value, output, bias_table, global_biases, between_globals);
  move.AsTheyAre(bias_index);
  if (!bias_table.defined()) return;
  if (bias_table.is_cpu() && bias_table.scalar_type() == at::kFloat) {
    kernel_bias = BiasForKernel(bias_table);
  } else {
    score_bias = ScoreBias(*this);
  }
}

}  // namespace longshort::models
