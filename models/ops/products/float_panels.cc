#include <algorithm>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "models/ops/products/panel_matrix.h"
#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT(void, MultiplyFloats,
                 (const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count, const HeadRows<float>& out,
                  const HeadRows<const float>& added, bool gelu),
                 (panel, rows, count, out, added, gelu))
LONGSHORT_SELECT(void, NormalizeFloats,
                 (const RowNorm& norm, int64_t width, const HeadRows<const float>& rows, int64_t count,
                  const HeadRows<float>& out),
                 (norm, width, rows, count, out))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using cpu::kFloatPanelOutputs;

// Numbers of the rows that are multiplied by all panels before the next ones: they stay in the L2 cache beside a panel.
constexpr int64_t kCachedFloats = 1 << 18;
// Multiply-adds that justify a thread.
constexpr int64_t kWorthAThread = 1 << 20;

at::Tensor PaddedPanels(const at::Tensor& weight) {
  const int64_t panels = (weight.size(0) + kFloatPanelOutputs - 1) / kFloatPanelOutputs;
  at::Tensor padded = at::zeros({panels * kFloatPanelOutputs, weight.size(1)}, at::kFloat);
  padded.narrow(0, 0, weight.size(0)).copy_(weight);
  return padded.view({panels, kFloatPanelOutputs, -1}).transpose(1, 2).contiguous();
}

}  // namespace

FloatPanels::FloatPanels(const at::Tensor& weight)
    : PackedMatrix(weight.size(0), weight.size(1)), panels_(PaddedPanels(weight)) {}

at::Tensor FloatPanels::Multiply(const at::Tensor& rows, const ProductEnd& end) const {
  const at::Tensor matrix = AsMatrix(rows);
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes.back() = outputs();
  at::Tensor result = at::empty(sizes, matrix.options());
  const auto* const from = matrix.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  const int64_t count = matrix.size(0), panels = panels_.size(0), stride = matrix.stride(0);
  const int64_t blocks = std::max<int64_t>(1, std::min(count, count * inputs() / kCachedFloats));
  const at::Tensor added = end.added.defined() ? AsMatrix(end.added) : end.added;
  const auto multiply = [&](int64_t block, int64_t panel) {
    const int64_t first = block * count / blocks, last = (block + 1) * count / blocks;
    const int64_t output = panel * kFloatPanelOutputs;
    cpu::HeadRows<const float> added_here;
    if (added.defined())
      added_here = {added.const_data_ptr<float>() + first * added.stride(0) + output, added.stride(0)};
    cpu::MultiplyFloats({.weights = panels_.const_data_ptr<float>() + output * inputs(),
                         .inputs = inputs(),
                         .outputs = std::min(kFloatPanelOutputs, outputs() - output),
                         .bias = end.bias.defined() ? end.bias.const_data_ptr<float>() + output : nullptr},
                        {from + first * stride, stride}, last - first, {to + first * outputs() + output, outputs()},
                        added_here, end.gelu);
  };
  const int64_t work = std::max<int64_t>(1, count / blocks * inputs() * kFloatPanelOutputs);
  at::parallel_for(0, blocks * panels, std::max<int64_t>(1, kWorthAThread / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) multiply(task / panels, task % panels);
  });
  return result;
}

}  // namespace longshort::models
