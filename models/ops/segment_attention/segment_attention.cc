#include "models/ops/segment_attention/segment_attention.h"

#include <algorithm>
#include <vector>

#include "ATen/Functions.h"
#include "c10/core/GradMode.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/segment_attention/segment_attention_kernels.h"
#include "torch/csrc/autograd/custom_function.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT_ANY(int64_t, AttendSegmentsScratchFloats, (const SegmentHead& head), (head))
LONGSHORT_SELECT_ANY(int64_t, SegmentGradientScratchFloats, (const SegmentHead& head), (head))
LONGSHORT_SELECT(void, AttendSegments, (const SegmentHead& head, const SegmentOutput& output, float* scratch),
                 (head, output, scratch))
LONGSHORT_SELECT(void, DifferentiateSegments,
                 (const SegmentHead& head, const SegmentGradient& gradient, float* scratch), (head, gradient, scratch))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The order of the function's tensors.
enum Argument {
  kQueries,
  kWindowKeys,
  kWindowValues,
  kMemoryKeys,
  kMemoryValues,
  kSegmentKeys,
  kSegmentValues,
  kWindowPositions,  // [W, heads, head_dim]
  kChunkPositions,   // [N, heads, head_dim]
  kWindowBias,       // [heads, head_dim]
  kRelativeBias,     // [heads, head_dim]
  kArguments
};

// Calls work(head, stream, channel, index), in order.
template <typename Work>
void ForEachHead(const SegmentGrid& grid, const variable_list& tensors, const Work& work) {
  const int64_t width = tensors[kQueries].size(2), head_width = width / grid.heads;
  const int64_t tokens = tensors[kQueries].size(1);
  for (int64_t stream = 0; stream < tensors[kQueries].size(0); ++stream) {
    for (int64_t channel = 0; channel < width; channel += head_width) {
      const auto rows = [&](Argument argument) {
        return RowsFrom(tensors[argument], stream * tensors[argument].size(1), channel);
      };
      const auto positions = [&](Argument argument) {
        return cpu::HeadRows<const float>{tensors[argument].const_data_ptr<float>() + channel, width};
      };
      work(cpu::SegmentHead{.head_width = head_width,
                            .shape = {.tokens = tokens,
                                      .segment_length = grid.segment_length,
                                      .chunk_size = grid.chunk_size,
                                      .rank = grid.rank,
                                      .window = tensors[kWindowPositions].size(0),
                                      .past = grid.past_vectors},
                            .queries = rows(kQueries),
                            .window_keys = rows(kWindowKeys),
                            .window_values = rows(kWindowValues),
                            .memory_keys = rows(kMemoryKeys),
                            .memory_values = rows(kMemoryValues),
                            .segment_keys = rows(kSegmentKeys),
                            .segment_values = rows(kSegmentValues),
                            .window_positions = positions(kWindowPositions),
                            .chunk_positions = positions(kChunkPositions),
                            .window_bias = positions(kWindowBias).data,
                            .relative_bias = positions(kRelativeBias).data},
           stream, channel, stream * grid.heads + channel / head_width);
    }
  }
}

class SegmentFunction final : public torch::autograd::Function<SegmentFunction> {
 public:
  static Variable forward(AutogradContext* context, const SegmentGrid& grid, at::TensorList given) {
    variable_list tensors;
    for (const at::Tensor& tensor : given) tensors.push_back(tensor.contiguous());
    const at::Tensor& queries = tensors[kQueries];
    const int64_t tokens = queries.size(1);
    at::Tensor attended = at::empty_like(queries);
    const at::Tensor log_sums = at::empty({queries.size(0) * grid.heads * tokens}, queries.options());
    std::vector<float> scratch;
    ForEachHead(grid, tensors, [&](const cpu::SegmentHead& head, int64_t stream, int64_t channel, int64_t index) {
      scratch.resize(cpu::AttendSegmentsScratchFloats(head));
      cpu::AttendSegments(head,
                          {.attended = MutableRowsFrom(attended, stream * tokens, channel),
                           .log_sums = log_sums.mutable_data_ptr<float>() + index * tokens},
                          scratch.data());
    });
    tensors.push_back(log_sums);
    context->save_for_backward(tensors);
    context->saved_data["grid"] =
        std::vector<int64_t>{grid.heads, grid.segment_length, grid.chunk_size, grid.rank, grid.past_vectors};
    return attended;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list tensors = context->get_saved_variables();
    const std::vector<int64_t> numbers = context->saved_data["grid"].toIntVector();
    const SegmentGrid grid{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    const at::Tensor from = gradients[0].contiguous(), &log_sums = tensors[kArguments];
    variable_list to = {Variable()};
    for (int argument = 0; argument < kArguments; ++argument) {
      to.push_back(argument < kWindowPositions ? at::empty_like(tensors[argument]) : at::zeros_like(tensors[argument]));
    }
    const int64_t width = from.size(2), tokens = from.size(1);
    std::vector<float> scratch;
    ForEachHead(grid, tensors, [&](const cpu::SegmentHead& head, int64_t stream, int64_t channel, int64_t index) {
      scratch.resize(cpu::SegmentGradientScratchFloats(head));
      const auto rows = [&](Argument argument) {
        return MutableRowsFrom(to[1 + argument], stream * to[1 + argument].size(1), channel);
      };
      const auto positions = [&](Argument argument) {
        return cpu::HeadRows<float>{to[1 + argument].mutable_data_ptr<float>() + channel, width};
      };
      cpu::DifferentiateSegments(head,
                                 {.attended = RowsFrom(from, stream * tokens, channel),
                                  .log_sums = log_sums.const_data_ptr<float>() + index * tokens,
                                  .queries = rows(kQueries),
                                  .window_keys = rows(kWindowKeys),
                                  .window_values = rows(kWindowValues),
                                  .memory_keys = rows(kMemoryKeys),
                                  .memory_values = rows(kMemoryValues),
                                  .segment_keys = rows(kSegmentKeys),
                                  .segment_values = rows(kSegmentValues),
                                  .window_positions = positions(kWindowPositions),
                                  .chunk_positions = positions(kChunkPositions),
                                  .window_bias = positions(kWindowBias).data,
                                  .relative_bias = positions(kRelativeBias).data},
                                 scratch.data());
    });
    return to;
  }
};

// Queries attend in blocks of whole chunks that divide a segment. Shorter blocks have fewer masked window keys.
int64_t QueryBlock(const SegmentGrid& grid, int64_t window) {
  const int64_t chunks = grid.segment_length / grid.chunk_size;
  int64_t best = 1;
  for (int64_t count = 1; count <= chunks; ++count) {
    if (chunks % count == 0 && count * grid.chunk_size <= std::max<int64_t>(64, window / 2)) best = count;
  }
  return best * grid.chunk_size;
}

}  // namespace

at::Tensor AttendSegments(const SegmentGrid& grid, const SegmentTensors& tensors, const RelativePositions& positions) {
  if (!c10::GradMode::is_enabled() || !tensors.queries.is_cpu() || tensors.queries.scalar_type() != at::kFloat) {
    return AttendSegmentsByReference(grid, tensors, positions);
  }
  return SegmentFunction::apply(
      grid, at::TensorList({tensors.queries, tensors.window_keys, tensors.window_values, tensors.memory_keys,
                            tensors.memory_values, tensors.segment_keys, tensors.segment_values, positions.window,
                            positions.chunk, positions.window_bias, positions.relative_bias}));
}

at::Tensor AttendSegmentsByReference(const SegmentGrid& grid, const SegmentTensors& tensors,
                                     const RelativePositions& positions) {
  const int64_t window = positions.window.size(0), block = QueryBlock(grid, window);
  const auto heads = [&](const at::Tensor& rows) { return rows.unflatten(2, {grid.heads, -1}); };
  std::vector<at::Tensor> attended;
  for (int64_t begin = 0; begin < tensors.queries.size(1); begin += block) {
    const int64_t segment_vectors = begin / grid.segment_length * (grid.segment_length / grid.chunk_size) * grid.rank;
    const int64_t seen_in_segment = begin / grid.chunk_size * grid.rank - segment_vectors;
    const int64_t added_within_block = (block / grid.chunk_size - 1) * grid.rank;
    // First the memory, which ends at the segment's start, then the segment's own chunks.
    const auto visible_chunks = [&](const at::Tensor& in_memory, const at::Tensor& in_segment) {
      return heads(at::cat({in_memory.narrow(1, segment_vectors, grid.past_vectors),
                            in_segment.narrow(1, segment_vectors, seen_in_segment + added_within_block)},
                           1));
    };
    attended.push_back(CausalAttention(heads(tensors.queries.narrow(1, begin, block)),
                                       heads(tensors.window_keys.narrow(1, begin, window - 1 + block)),
                                       heads(tensors.window_values.narrow(1, begin, window - 1 + block)),
                                       visible_chunks(tensors.memory_keys, tensors.segment_keys),
                                       visible_chunks(tensors.memory_values, tensors.segment_values),
                                       grid.past_vectors + seen_in_segment, grid.chunk_size, grid.rank, positions));
  }
  return at::cat(attended, 1);
}

}  // namespace longshort::models
