#include "models/language_model/segment_forward.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/GradMode.h"
#include "models/attention/dynamic_projection.h"

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

// Queries attend in blocks of whole chunks that divide a segment. Shorter blocks have fewer masked window keys.
int64_t QueryBlock(const LanguageModelConfig& config) {
  const int64_t chunks = config.segment_length / config.chunk_size;
  int64_t best = 1;
  for (int64_t count = 1; count <= chunks; ++count) {
    if (chunks % count == 0 && count * config.chunk_size <= std::max<int64_t>(64, config.window_length / 2))
      best = count;
  }
  return best * config.chunk_size;
}

at::Tensor Heads(const at::Tensor& rows, int64_t heads) { return rows.view({rows.size(0), rows.size(1), heads, -1}); }

// Runs one layer over hidden [batch, T, d]. Reads and then replaces `memory`.
at::Tensor ForwardLayer(const LanguageModelConfig& config, const DecoderLayer& layer,
                        const RelativePositions& positions, const at::Tensor& hidden, LayerMemory& memory) {
  const int64_t tokens = hidden.size(1), heads = config.heads, rank = config.chunk_rank;
  const int64_t past_rows = config.window_length - 1, past_vectors = config.memory_length / config.chunk_size * rank;
  const at::Tensor input = layer.AttentionInput(hidden);
  const Projections projections = layer.Project(input);
  const CompressedChunks chunks = Compress(layer, input, projections, config.chunk_size);

  const at::Tensor window_keys = at::cat({memory.window_keys, layer.window_norm(projections.keys())}, 1);
  const at::Tensor window_values = at::cat({memory.window_values, layer.window_norm(projections.values())}, 1);
  const at::Tensor memory_keys = at::cat({memory.memory_keys, chunks.memory_keys}, 1);
  const at::Tensor memory_values = at::cat({memory.memory_values, chunks.memory_values}, 1);

  const int64_t block = QueryBlock(config);
  std::vector<at::Tensor> attended;
  for (int64_t begin = 0; begin < tokens; begin += block) {
    const int64_t segment_vectors = begin / config.segment_length * (config.segment_length / config.chunk_size) * rank;
    const int64_t seen_in_segment = begin / config.chunk_size * rank - segment_vectors;
    const int64_t added_within_block = (block / config.chunk_size - 1) * rank;
    // First the memory, which ends at the segment's start, then the segment's own chunks.
    const auto visible_chunks = [&](const at::Tensor& in_memory, const at::Tensor& in_segment) {
      return Heads(at::cat({in_memory.narrow(1, segment_vectors, past_vectors),
                            in_segment.narrow(1, segment_vectors, seen_in_segment + added_within_block)},
                           1),
                   heads);
    };
    attended.push_back(CausalAttention(Heads(projections.queries.narrow(1, begin, block), heads),
                                       Heads(window_keys.narrow(1, begin, past_rows + block), heads),
                                       Heads(window_values.narrow(1, begin, past_rows + block), heads),
                                       visible_chunks(memory_keys, chunks.segment_keys),
                                       visible_chunks(memory_values, chunks.segment_values),
                                       past_vectors + seen_in_segment, config.chunk_size, rank, positions));
  }

  const auto last = [](const at::Tensor& rows, int64_t count) {
    return rows.narrow(1, rows.size(1) - count, count).detach();
  };
  memory = {.window_keys = last(window_keys, past_rows),
            .window_values = last(window_values, past_rows),
            .memory_keys = last(memory_keys, past_vectors),
            .memory_values = last(memory_values, past_vectors)};
  return layer.Finish(input, at::cat(attended, 1));
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

at::Tensor ForwardSegments(const Decoder& decoder, const at::Tensor& ids, StreamMemory& memory) {
  const at::Tensor window_table = decoder.WindowPositionTable();
  const at::Tensor chunk_table = decoder.ChunkPositionTable();
  at::Tensor hidden = decoder.Embed(ids);
  for (size_t index = 0; index < decoder.layers.size(); ++index) {
    const DecoderLayer& layer = decoder.layers[index];
    hidden = ForwardLayer(decoder.config, layer, layer.Positions(window_table, chunk_table), hidden, memory[index]);
  }
  return decoder.Logits(hidden);
}

}  // namespace longshort::models
