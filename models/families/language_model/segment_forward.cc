#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/GradMode.h"
#include "models/families/language_model/decoder.h"
#include "models/ops/landmarks/dynamic_projection.h"
#include "models/ops/layer_halves/layer_halves.h"
#include "models/ops/segment_attention/segment_attention.h"

namespace longshort::models {
namespace {

// Compressed keys and values of every chunk, in both forms; each [batch, chunks * R, d].
struct CompressedChunks {
  at::Tensor segment_keys, segment_values;  // form A: project, then mix (as the chunk's own segment sees it)
  at::Tensor memory_keys, memory_values;    // form B: mix, then project (as later segments see it)
};

CompressedChunks Compress(const DecoderLayer& layer, const at::Tensor& input, const Projections& projections,
                          int64_t chunk_size) {
  const at::Tensor weights = ProjectionWeights(projections.projection_logits, layer.heads, chunk_size);
  const at::Tensor mixed_input = MixChunks(weights, input);
  const at::Tensor memory = layer.chunk_norm(layer.KeysAndValues(mixed_input));
  return {.segment_keys = layer.chunk_norm(MixChunks(weights, projections.keys())),
          .segment_values = layer.chunk_norm(MixChunks(weights, projections.values())),
          .memory_keys = memory.select(-2, 0),
          .memory_values = memory.select(-2, 1)};
}

// What is before attention, of rows [batch, T, d].
struct ProjectedInput {
  at::Tensor input;
  Projections projections;
  at::Tensor window_keys, window_values;  // after DualLN
};

ProjectedInput Project(const DecoderLayer& layer, const at::Tensor& hidden) {
  const at::Tensor input = layer.AttentionInput(hidden);
  const Projections projections = layer.Project(input);
  return {.input = input,
          .projections = projections,
          .window_keys = layer.window_norm(projections.keys()),
          .window_values = layer.window_norm(projections.values())};
}

ProjectedInput ProjectFused(const DecoderLayer& layer, const at::Tensor& hidden) {
  const int64_t batch = hidden.size(0), width = hidden.size(2);
  const auto part = [](const Linear& map, int64_t first, int64_t count) {
    return Linear{.weight = map.weight.narrow(0, first, count),
                  .bias = map.bias.defined() ? map.bias.narrow(0, first, count) : at::Tensor()};
  };
  const double scale = std::sqrt(static_cast<double>(width) / static_cast<double>(layer.heads));
  Linear query = part(layer.query_and_logits, 0, width);
  query.weight = query.weight / scale;
  if (query.bias.defined()) query.bias = query.bias / scale;
  const Linear logits = part(layer.query_and_logits, width, layer.query_and_logits.outputs() - width);
  const Linear key = part(layer.key_and_value, 0, width), value = part(layer.key_and_value, width, width);
  const LayerNorm none;
  const ProjectedRows rows = BeforeAttention{layer.pre_layer_norm ? layer.norm1 : none,
                                             query,
                                             key,
                                             value,
                                             logits,
                                             layer.window_norm,
                                             /*keeps_input=*/true}(hidden.flatten(0, 1));
  const auto of_streams = [&](const at::Tensor& of_rows) { return of_rows.unflatten(0, {batch, -1}); };
  return {.input = of_streams(rows.input),
          .projections = {.queries = of_streams(rows.queries),
                          .projection_logits = of_streams(rows.logits),
                          .keys_values = of_streams(rows.keys_values).unflatten(2, {2, width})},
          .window_keys = of_streams(rows.keys),
          .window_values = of_streams(rows.values)};
}

// Runs one layer over hidden [batch, T, d]. Reads and then replaces `memory`.
at::Tensor ForwardLayer(const LanguageModelConfig& config, const DecoderLayer& layer,
                        const RelativePositions& positions, const at::Tensor& hidden, LayerMemory& memory,
                        Dropout* dropout) {
  const int64_t past_rows = config.window_length - 1;
  const int64_t past_vectors = config.memory_length / config.chunk_size * config.chunk_rank;
  const bool fused = CanRunHalves(hidden, layer.output, layer.feed_forward_in);
  const ProjectedInput projected = fused ? ProjectFused(layer, hidden) : Project(layer, hidden);
  const at::Tensor& input = projected.input;
  const Projections& projections = projected.projections;
  const CompressedChunks chunks = Compress(layer, input, projections, config.chunk_size);

  const at::Tensor window_keys = at::cat({memory.window_keys, projected.window_keys}, 1);
  const at::Tensor window_values = at::cat({memory.window_values, projected.window_values}, 1);
  const at::Tensor memory_keys = at::cat({memory.memory_keys, chunks.memory_keys}, 1);
  const at::Tensor memory_values = at::cat({memory.memory_values, chunks.memory_values}, 1);

  const at::Tensor attended = AttendSegments({.heads = config.heads,
                                              .segment_length = config.segment_length,
                                              .chunk_size = config.chunk_size,
                                              .rank = config.chunk_rank,
                                              .past_vectors = past_vectors},
                                             {.queries = projections.queries,
                                              .window_keys = window_keys,
                                              .window_values = window_values,
                                              .memory_keys = memory_keys,
                                              .memory_values = memory_values,
                                              .segment_keys = chunks.segment_keys,
                                              .segment_values = chunks.segment_values},
                                             positions);

  const auto last = [](const at::Tensor& rows, int64_t count) {
    return rows.narrow(1, rows.size(1) - count, count).detach();
  };
  memory = {.window_keys = last(window_keys, past_rows),
            .window_values = last(window_values, past_rows),
            .memory_keys = last(memory_keys, past_vectors),
            .memory_values = last(memory_values, past_vectors)};
  if (!fused || !layer.pre_layer_norm || !layer.gelu || (dropout != nullptr && dropout->drops_rows())) {
    return layer.Finish(input, attended, dropout);
  }
  const AfterAttention finish{layer.output, layer.norm2, layer.feed_forward_in, layer.feed_forward_out,
                              /*normed_residual=*/true};
  return finish(input.flatten(0, 1), attended.flatten(0, 1)).view_as(hidden);
}

}  // namespace

StreamMemory ZeroMemory(const Decoder& decoder, int64_t batch) {
  const c10::NoGradGuard no_grad;
  const LanguageModelConfig& config = decoder.config;
  const int64_t past_vectors = config.memory_length / config.chunk_size * config.chunk_rank;
  StreamMemory memory;
  for (const DecoderLayer& layer : decoder.layers) {
    const at::Tensor zero = at::zeros({1, 1, config.model_width}, decoder.embedding.options());
    const Projections projections = layer.Project(layer.AttentionInput(zero));
    const auto repeat = [&](const at::Tensor& row, int64_t count) {
      return row.expand({batch, count, config.model_width}).contiguous();
    };
    memory.push_back({.window_keys = repeat(layer.window_norm(projections.keys()), config.window_length - 1),
                      .window_values = repeat(layer.window_norm(projections.values()), config.window_length - 1),
                      .memory_keys = repeat(layer.chunk_norm(projections.keys()), past_vectors),
                      .memory_values = repeat(layer.chunk_norm(projections.values()), past_vectors)});
  }
  return memory;
}

at::Tensor ForwardSegments(const Decoder& decoder, const at::Tensor& ids, StreamMemory& memory, Dropout* dropout) {
  at::Tensor window_table = decoder.WindowPositionTable();
  if (dropout != nullptr) window_table = dropout->OfTable(window_table);
  const at::Tensor chunk_table = decoder.ChunkPositionTable();
  at::Tensor hidden = Dropped(dropout, decoder.Embed(ids));
  for (size_t index = 0; index < decoder.layers.size(); ++index) {
    const DecoderLayer& layer = decoder.layers[index];
    const RelativePositions positions = layer.Positions(window_table, chunk_table);
    hidden = ForwardLayer(decoder.config, layer, positions, hidden, memory[index], dropout);
  }
  return decoder.Logits(Dropped(dropout, hidden));
}

}  // namespace longshort::models
