#include "models/ops/grid_attention/grid_attention.h"

#include <limits>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/grad_mode.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models {
namespace {

// Non-negative offsets along one axis of `queries` positions to keys at -margin .. queries + margin - 1.
//   returns  [queries, queries + 2 * margin], int64
at::Tensor Offsets(int64_t queries, int64_t margin, const at::Device& device) {
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(device);
  const at::Tensor keys = at::arange(-margin, queries + margin, integers);
  return at::arange(queries, integers).unsqueeze(1) - keys + (margin + queries - 1);
}

// rows * factor + columns for all pairs of places in squares whose axes have these offsets.
at::Tensor PairIndex(const at::Tensor& offsets, int64_t factor) {
  const at::Tensor rows = offsets.unsqueeze(1).unsqueeze(3), columns = offsets.unsqueeze(0).unsqueeze(2);
  return (rows * factor + columns).flatten(2, 3).flatten(0, 1);
}

int64_t Segments(int64_t length, int64_t side) { return (length + side - 1) / side; }

// For each segment, the positions along one axis of its `count` places from `first` on: [segments, count].
at::Tensor AxisPositions(int64_t length, int64_t side, int64_t first, int64_t count, const at::Device& device) {
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(device);
  return (at::arange(Segments(length, side), integers) * side + first).unsqueeze(1) + at::arange(count, integers);
}

// One entry for each place of each segment, row-major within the segment.
struct Places {
  at::Tensor tokens;   // [segments * places], int64: the token at the place; 0 if it is outside the grid
  at::Tensor outside;  // [segments, places], bool: whether it is outside the grid
};

// The places of each segment in the square of side `count` whose corner is (first, first) from the segment's corner.
Places SegmentPlaces(const TokenGrid& grid, int64_t side, int64_t first, int64_t count, const at::Device& device) {
  const at::Tensor rows = AxisPositions(grid.height, side, first, count, device).unsqueeze(1).unsqueeze(3);
  const at::Tensor columns = AxisPositions(grid.width, side, first, count, device).unsqueeze(0).unsqueeze(2);
  const at::Tensor outside = rows.lt(0)
                                 .logical_or(rows.ge(grid.height))
                                 .logical_or(columns.lt(0).logical_or(columns.ge(grid.width)))
                                 .flatten(2, 3)
                                 .flatten(0, 1);
  const at::Tensor tokens = (rows * grid.width + columns).flatten().masked_fill(outside.flatten(), 0);
  return {.tokens = tokens, .outside = outside};
}

// The inverse of the segments' order: the index of each token among segments * w*w places. [tokens], int64.
at::Tensor PlaceOfToken(const TokenGrid& grid, int64_t side, const at::Device& device) {
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(device);
  const at::Tensor rows = at::arange(grid.height, integers).unsqueeze(1);
  const at::Tensor columns = at::arange(grid.width, integers).unsqueeze(0);
  const at::Tensor segment = rows.floor_divide(side) * Segments(grid.width, side) + columns.floor_divide(side);
  return (segment * (side * side) + rows.remainder(side) * side + columns.remainder(side)).flatten();
}

// [batch, heads, tokens, head_dim] -> [batch, heads, segments, places, head_dim]. A gather by index is slower than a
// strided view in the forward pass, but its gradient is several times faster.
at::Tensor Cut(const at::Tensor& rows, const Places& places) {
  return rows.index_select(2, places.tokens).unflatten(2, places.outside.sizes());
}

}  // namespace

at::Tensor LongShortAttention2d(const at::Tensor& queries, const KeyValues& tokens, const KeyValues& shared,
                                const TokenGrid& grid, const WindowGeometry& window, const at::Tensor& window_bias) {
  if (window.side == 0) {
    return at::matmul(at::matmul(queries, shared.keys.transpose(2, 3)).softmax(-1), shared.values);
  }
  const at::Device device = queries.device();
  const Places segments = SegmentPlaces(grid, window.side, 0, window.side, device);
  const Places visible = SegmentPlaces(grid, window.side, -window.margin(), window.visible_side(), device);
  const at::Tensor mask = at::zeros(visible.outside.sizes(), queries.options())
                              .masked_fill(visible.outside, -std::numeric_limits<double>::infinity());

  const at::Tensor by_segment = Cut(queries, segments);  // [batch, heads, segments, w*w, head_dim]
  const at::Tensor window_scores = at::matmul(by_segment, Cut(tokens.keys, visible).transpose(3, 4));
  window_scores.add_(mask.unsqueeze(1));
  if (window_bias.defined()) window_scores.add_(window_bias.unsqueeze(1));

  const at::Tensor by_row = by_segment.flatten(2, 3);
  const at::Tensor shared_scores = at::matmul(by_row, shared.keys.transpose(2, 3));
  const at::Tensor probabilities = at::cat({window_scores.flatten(2, 3), shared_scores}, 3).softmax(-1);

  const int64_t count = window.keys();
  const at::Tensor of_window = probabilities.narrow(3, 0, count).unflatten(2, segments.outside.sizes());
  const at::Tensor of_shared = probabilities.narrow(3, count, shared.keys.size(2));
  const at::Tensor mixed =
      at::matmul(of_window, Cut(tokens.values, visible)).flatten(2, 3) + at::matmul(of_shared, shared.values);
  return mixed.index_select(2, PlaceOfToken(grid, window.side, device));
}

}  // namespace longshort::models

namespace longshort::models::cpu {

LONGSHORT_SELECT_ANY(int64_t, AttendGridScratchFloats, (const GridHead& head), (head))
LONGSHORT_SELECT(void, AttendGrid,
                 (const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch),
                 (head, band, attended, scratch))

}  // namespace longshort::models::cpu

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

at::Tensor WindowBiasIndex(int64_t window_size, const at::Device& device) {
  if (window_size == 1) return at::zeros({1, 9}, at::TensorOptions(at::kLong).device(device));
  const int64_t margin = window_size / 2;
  return PairIndex(Offsets(window_size, margin, device), 2 * margin + window_size);
}

at::Tensor GridBiasIndex(int64_t side, const at::Device& device) {
  return PairIndex(Offsets(side, 0, device), 2 * side - 1);
}

at::Tensor BiasOfPairs(const at::Tensor& table, const at::Tensor& index) {
  return table.t().index_select(1, index.flatten()).unflatten(1, index.sizes());
}

}  // namespace longshort::models
