#include "models/ops/grid_attention/grid_attention.h"

#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/core/grad_mode.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"

namespace longshort::models {
namespace {

// The channels from `channel` on of an item's rows; `rows` is [items, rows, d].
cpu::HeadRows<const float> ChannelsFrom(const at::Tensor& rows, int64_t item, int64_t channel) {
  return {rows.const_data_ptr<float>() + item * rows.stride(0) + channel, rows.stride(1)};
}

}  // namespace

bool CanAttendGrids(const RowsToAttend& rows, const WindowGeometry& window) {
  if (window.side == 0) return false;
  for (const at::Tensor* const tensor :
       {&rows.queries, &rows.tokens.keys, &rows.tokens.values, &rows.shared.keys, &rows.shared.values}) {
    if (!tensor->is_cpu() || tensor->scalar_type() != at::kFloat) return false;
    if (at::GradMode::is_enabled() && tensor->requires_grad()) return false;
  }
  return true;
}

at::Tensor WithVectorBehind(const at::Tensor& biases) {
  at::Tensor copy = at::zeros({biases.numel() + cpu::kLanes}, biases.options());
  copy = copy.narrow(0, 0, biases.numel()).view(biases.sizes());
  return copy.copy_(biases);
}

at::Tensor AttendGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                       const at::Tensor& window_bias, int64_t others) {
  const int64_t images = rows.queries.size(0), channels = rows.queries.size(2), head_width = channels / rows.heads;
  at::Tensor attended = at::empty({images, others + grid.tokens(), channels}, rows.queries.options());
  const auto head_of = [&](int64_t image, int64_t head) {
    const int64_t channel = head * head_width;
    return cpu::GridHead{
        .head_width = head_width,
        .height = grid.height,
        .width = grid.width,
        .side = window.side,
        .margin = window.margin(),
        .shared = rows.shared.keys.size(1),
        .queries = ChannelsFrom(rows.queries, image, channel),
        .keys = ChannelsFrom(rows.tokens.keys, image, channel),
        .values = ChannelsFrom(rows.tokens.values, image, channel),
        .shared_keys = ChannelsFrom(rows.shared.keys, image, channel),
        .shared_values = ChannelsFrom(rows.shared.values, image, channel),
        .bias = window_bias.defined() ? window_bias.const_data_ptr<float>() + head * window_bias.stride(0) : nullptr};
  };
  const int64_t bands = head_of(0, 0).bands();
  at::parallel_for(0, images * rows.heads * bands, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(cpu::AttendGridScratchFloats(head_of(0, 0)));
    for (int64_t index = begin; index < end; ++index) {
      const int64_t image = index / bands / rows.heads, head = index / bands % rows.heads;
      float* const to = attended.mutable_data_ptr<float>() + image * attended.stride(0) + others * channels;
      cpu::AttendGrid(head_of(image, head), index % bands, {to + head * head_width, channels}, scratch.data());
    }
  });
  return attended;
}

}  // namespace longshort::models
