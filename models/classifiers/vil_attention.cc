#include "models/classifiers/vil_attention.h"

#include <cmath>
#include <optional>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/dynamic_projection.h"
#include "models/attention/long_short_attention_2d.h"
#include "models/classifiers/vil_position_bias.h"

namespace longshort {
namespace {

// [batch, n, heads * head_dim] -> [batch, heads, n, head_dim], and back.
at::Tensor SplitHeads(const at::Tensor& rows, int64_t heads) { return rows.unflatten(2, {heads, -1}).transpose(1, 2); }
at::Tensor JoinHeads(const at::Tensor& by_head) { return by_head.transpose(1, 2).flatten(2); }

double QueryScale(const at::Tensor& rows, int64_t heads) {
  return 1.0 / std::sqrt(static_cast<double>(rows.size(2)) / static_cast<double>(heads));
}

// `count` tokens from `first` on, of keys and values by head.
KeyValues Narrow(const KeyValues& all, int64_t first, int64_t count) {
  return {.keys = all.keys.narrow(2, first, count), .values = all.values.narrow(2, first, count)};
}

KeyValues Join(const KeyValues& first, const KeyValues& second) {
  return {.keys = at::cat({first.keys, second.keys}, 2), .values = at::cat({first.values, second.values}, 2)};
}

// The patches compressed to `rank` vectors by weights that depend on them, by head.
//   input         [batch, patches, d]: what keys and values were made of
//   keys, values  [batch, patches, d], after dual_ln_full
KeyValues Landmarks(const VilSparseAttention& attention, const at::Tensor& input, const at::Tensor& keys,
                    const at::Tensor& values) {
  const at::Tensor weights = ProjectionWeights(attention.dynamic_projection(input), attention.heads, input.size(1));
  const auto compress = [&](const at::Tensor& rows) {
    return SplitHeads(attention.landmark_norm(MixChunks(weights, rows)), attention.heads);
  };
  return {.keys = compress(keys), .values = compress(values)};
}

// Biases of the scores of all pairs of tokens: [heads, g + patches, g + patches].
at::Tensor FullBias(const VilFullAttention& attention) {
  at::Tensor patches = BiasOfPairs(attention.bias_table, attention.bias_index);
  if (!attention.global_biases.defined()) return patches;
  const int64_t heads = patches.size(0), count = patches.size(1), globals = attention.global_biases.size(2);
  const at::Tensor to_patches = attention.global_biases.select(0, 0).unsqueeze(2).expand({heads, globals, count});
  const at::Tensor to_globals = attention.global_biases.select(0, 1).unsqueeze(1).expand({heads, count, globals});
  return at::cat({at::cat({attention.between_globals, to_patches}, 2), at::cat({to_globals, patches}, 2)}, 1);
}

}  // namespace

at::Tensor VilSparseAttention::operator()(const at::Tensor& rows, ItemAttention* attention) const {
  const std::vector<at::Tensor> projected = query_key_value(rows).chunk(3, 2);
  const at::Tensor keys = full_norm(projected[1]), values = full_norm(projected[2]);
  return output(attention == nullptr ? Attend(rows, projected[0], keys, values)
                                     : AttendBy(*attention, rows, projected[0], keys, values));
}

void VilSparseAttention::MoveBy(TensorMove& move) {
  move(query_key_value, dynamic_projection, full_norm, output);
  move.AsTheyAre(landmark_norm, bias_table, bias_index);  // kernels read them
}

at::Tensor VilSparseAttention::Attend(const at::Tensor& rows, const at::Tensor& unscaled, const at::Tensor& keys,
                                      const at::Tensor& values) const {
  const int64_t patches = side * side;
  const at::Tensor queries = SplitHeads(unscaled * QueryScale(rows, heads), heads);
  const KeyValues tokens{.keys = SplitHeads(keys, heads), .values = SplitHeads(values, heads)};
  const KeyValues global = Narrow(tokens, 0, global_tokens);

  KeyValues shared = global;
  if (dynamic_projection.weight.defined()) {
    const auto of_patches = [&](const at::Tensor& all) { return all.narrow(1, global_tokens, patches); };
    shared = Join(Landmarks(*this, of_patches(rows), of_patches(keys), of_patches(values)), global);
  }
  const at::Tensor bias = bias_table.defined() ? BiasOfPairs(bias_table, bias_index) : at::Tensor();
  const at::Tensor attended =
      LongShortAttention2d(queries.narrow(2, global_tokens, patches), Narrow(tokens, global_tokens, patches), shared,
                           {.height = side, .width = side}, {.side = window_size}, bias);
  if (global_tokens == 0) return JoinHeads(attended);

  // The global token reads what the patches became: keys and values at once.
  const KeyValues seen = Join(global, {.keys = attended, .values = attended});
  const at::Tensor scores = at::matmul(queries.narrow(2, 0, global_tokens), seen.keys.transpose(2, 3));
  const at::Tensor global_attended = at::matmul(scores.softmax(-1), seen.values);
  return JoinHeads(at::cat({global_attended, attended}, 2));
}

at::Tensor VilSparseAttention::AttendBy(ItemAttention& attention, const at::Tensor& rows, const at::Tensor& queries,
                                        const at::Tensor& keys, const at::Tensor& values) const {
  const int64_t patches = side * side;
  const auto of_patches = [&](const at::Tensor& all) { return all.narrow(1, global_tokens, patches); };
  const RowKeyValues tokens = {.keys = of_patches(keys), .values = of_patches(values)};
  RowKeyValues shared = {.keys = keys.narrow(1, 0, global_tokens), .values = values.narrow(1, 0, global_tokens)};
  if (dynamic_projection.weight.defined()) {
    // Of all tokens: rows of logits lie as those of keys do.
    const RowKeyValues all = attention.Landmarks({.heads = heads,
                                                  .logits = of_patches(dynamic_projection(rows)),
                                                  .tokens = tokens,
                                                  .key_norm = landmark_norm,
                                                  .value_norm = landmark_norm},
                                                 global_tokens);
    if (global_tokens > 0) {
      all.keys.narrow(1, 0, global_tokens).copy_(shared.keys);
      all.values.narrow(1, 0, global_tokens).copy_(shared.values);
    }
    shared = all;
  }
  at::Tensor attended = at::empty(keys.sizes(), keys.options());
  attention.AttendInGrids({.heads = heads,
                           .queries = of_patches(queries),
                           .tokens = tokens,
                           .shared = shared,
                           .attended = of_patches(attended)},
                          {.height = side, .width = side}, {.side = window_size}, bias_table);
  if (global_tokens == 0) return attended;

  const auto global = [](const at::Tensor& all) { return all.select(1, 0); };
  attention.AttendToRows({.heads = heads,
                          .queries = global(queries),
                          .own = {.keys = global(keys), .values = global(values)},
                          .rows = of_patches(attended),
                          .attended = global(attended)});
  return attended;
}

at::Tensor VilFullAttention::operator()(const at::Tensor& rows) const {
  const std::vector<at::Tensor> projected = query_key_value(rows).chunk(3, 2);
  const std::optional<at::Tensor> bias =
      bias_table.defined() ? std::make_optional(FullBias(*this).unsqueeze(0)) : std::nullopt;
  const at::Tensor attended = at::scaled_dot_product_attention(
      SplitHeads(projected[0], heads), SplitHeads(projected[1], heads), SplitHeads(projected[2], heads), bias,
      /*dropout_p=*/0.0, /*is_causal=*/false, QueryScale(rows, heads));
  return output(JoinHeads(attended));
}

void VilFullAttention::MoveBy(TensorMove& move) {
  move(query_key_value, output, bias_table, global_biases, between_globals);
  move.AsTheyAre(bias_index);
}

}  // namespace longshort
