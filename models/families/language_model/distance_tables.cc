#include "models/families/language_model/distance_tables.h"

#include "ATen/Functions.h"

namespace longshort::models {
namespace {

// positions [count, heads, head_width], distance 0 first.
template <typename Element>
at::Tensor KernelLayout(const at::Tensor& positions) {
  const int64_t width = positions.size(2), even_width = cpu::EvenHeadWidth(width);
  const at::Tensor oldest_first =
      at::constant_pad_nd(positions.flip(0).permute({1, 2, 0}), {cpu::kBlock, cpu::kBlock, 0, even_width - width});
  if constexpr (!cpu::kChannelsInPairs<Element>) return oldest_first.contiguous();
  return oldest_first.to(at::kBFloat16).unflatten(1, {even_width / 2, 2}).transpose(2, 3).contiguous();
}

}  // namespace

template <typename Element>
DistanceTables<Element>::DistanceTables(const Decoder& decoder) {
  const at::Tensor window_table = decoder.WindowPositionTable(), chunk_table = decoder.ChunkPositionTable();
  for (const DecoderLayer& layer : decoder.layers) {
    const RelativePositions positions = layer.Positions(window_table, chunk_table);
    window_.push_back(KernelLayout<Element>(positions.window));
    chunk_.push_back(KernelLayout<Element>(positions.chunk));
  }
}

template <typename Element>
cpu::DistanceTable<Element> DistanceTables<Element>::View(const at::Tensor& tables, int64_t head) {
  return {.table = static_cast<const Element*>(tables.const_data_ptr()) + head * tables.stride(0),
          .count = tables.size(2) - 2 * cpu::kBlock};
}

template class DistanceTables<float>;
template class DistanceTables<cpu::BFloat16>;

}  // namespace longshort::models
