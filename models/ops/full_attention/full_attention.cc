#include "models/ops/full_attention/full_attention.h"

#include <cmath>
#include <memory>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/core/grad_mode.h"
#include "models/ops/full_attention/full_attention_kernels.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT(void, AttendFully, (const FullHead& head, const HeadRows<float>& attended, float* scratch),
                 (head, attended, scratch))

int64_t AttendFullyScratchFloats(const FullHead& head) {
  const int64_t tokens = head.tokens, stride = SpreadStride(tokens), padded_width = PaddedHeadWidth(head.head_width);
  return head.head_width * stride + tokens * padded_width + kFullQueries * (head.head_width + stride + padded_width);
}

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

const float* DataFrom(const at::Tensor& tensor, int64_t offset) {
  return tensor.defined() ? tensor.const_data_ptr<float>() + offset : nullptr;
}

}  // namespace

at::Tensor BiasForKernel(const at::Tensor& table) {
  // The kernel counts from the query to the key, the table from the key to the query.
  return WithVectorBehind(table.flip(0).t());
}

bool CanAttendFully(const at::Tensor& query_key_value) {
  return query_key_value.is_cpu() && query_key_value.scalar_type() == at::kFloat && query_key_value.is_contiguous() &&
         !(at::GradMode::is_enabled() && query_key_value.requires_grad());
}

at::Tensor AttendFully(const at::Tensor& query_key_value, int64_t heads, const FullBias& bias,
                       cpu::InstructionSet set) {
  const int64_t images = query_key_value.size(0), tokens = query_key_value.size(1), d = query_key_value.size(2) / 3;
  const int64_t head_width = d / heads;
  at::Tensor attended = at::empty({images, tokens, d}, query_key_value.options());
  const bool has_bias = bias.patches.defined();
  const int64_t side = has_bias ? (std::lround(std::sqrt(static_cast<double>(bias.patches.size(1)))) + 1) / 2 : 0;
  const int64_t globals = has_bias ? tokens - side * side : 0;
  const auto head_of = [&](int64_t image, int64_t head) {
    const float* const queries = query_key_value.const_data_ptr<float>() + image * tokens * 3 * d + head * head_width;
    return cpu::FullHead{.head_width = head_width,
                         .tokens = tokens,
                         .globals = globals,
                         .side = side,
                         .queries = {queries, 3 * d},
                         .keys = {queries + d, 3 * d},
                         .values = {queries + 2 * d, 3 * d},
                         .patch_bias = has_bias ? DataFrom(bias.patches, head * bias.patches.size(1)) : nullptr,
                         .to_patches = DataFrom(bias.of_globals, head * globals),
                         .to_globals = DataFrom(bias.of_globals, (heads + head) * globals),
                         .between_globals = DataFrom(bias.between_globals, head * globals * globals)};
  };
  at::parallel_for(0, images * heads, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    const auto scratch = std::make_unique_for_overwrite<float[]>(cpu::AttendFullyScratchFloats(head_of(0, 0)));
    for (int64_t index = begin; index < end; ++index) {
      const int64_t image = index / heads, head = index % heads;
      cpu::AttendFully(head_of(image, head),
                       {attended.mutable_data_ptr<float>() + image * tokens * d + head * head_width, d}, scratch.get(),
                       set);
    }
  });
  return attended;
}

}  // namespace longshort::models
