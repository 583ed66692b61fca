#include "models/ops/products/panel_matrix.h"

#include <algorithm>
#include <cmath>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/native/CPUBlas.h"
#include "c10/util/BFloat16.h"
#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT(void, MultiplyInt8,
                 (const Int8Panel& panel, const HeadRows<const float>& rows, int64_t count, const HeadRows<float>& out),
                 (panel, rows, count, out))
LONGSHORT_SELECT(void, WidenInt8, (const Int8Panel& panel, const HeadRows<float>& weights), (panel, weights))
LONGSHORT_SELECT(void, WidenPairs, (const BFloat16* pairs, int64_t inputs, const HeadRows<float>& weights),
                 (pairs, inputs, weights))
LONGSHORT_SELECT(void, WidenToPairs, (const Int8Panel& panel, BFloat16* pairs), (panel, pairs))
LONGSHORT_SELECT(void, RoundToBFloat16, (const float* from, int64_t count, BFloat16* to), (from, count, to))
LONGSHORT_SELECT(void, FinishProduct,
                 (const HeadRows<float>& rows, int64_t count, int64_t columns, const Summands& added, bool gelu),
                 (rows, count, columns, added, gelu))

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

using cpu::kGroupInputs;
using cpu::kPanelOutputs;
using cpu::kWordInputs;

// Rows of a call of oneDNN's kernel: its operands stay in the L1 and L2 caches.
constexpr int64_t kBlockRows = 64;
// Inputs whose int8 weights are widened together: the pairs fit half of the L1 cache.
constexpr int64_t kWidenedInputs = 256;

// Rows from which tiles are faster than sums in registers.
constexpr int64_t kRowsForTiles = 8;
// Rows from which the library's product of widened weights is faster.
constexpr int64_t kManyRows = 48;
// Numbers whose rounding justifies a thread.
constexpr int64_t kRoundedPerThread = 1 << 15;
// Panels that are widened together: some megabytes.
constexpr int64_t kWidenedPanels = 16;

constexpr int64_t Parts(int64_t count, int64_t size) { return (count + size - 1) / size; }
// Inputs are padded, so that they fill words.
constexpr int64_t Padded(int64_t inputs) { return Parts(inputs, kWordInputs) * kWordInputs; }

// The rows of a kernel's call. Few different ones, because oneDNN compiles a kernel for each.
int64_t KernelRows(int64_t rows) {
  if (rows > 16) return Parts(rows, 16) * 16;
  int64_t padded = 1;
  while (padded < rows) padded *= 2;
  return padded;
}
int64_t RowsOfKernels(int64_t rows) { return rows / kBlockRows * kBlockRows + KernelRows(rows % kBlockRows); }

// Rows of `inputs` bfloat16 numbers that fit half of the L2 cache.
int64_t CachedRows(int64_t inputs) {
  constexpr int64_t kNumbers = 512 << 10;
  return std::max<int64_t>(kNumbers / inputs / kBlockRows, 1) * kBlockRows;
}

// Panels that justify a thread. Waking one costs some microseconds, and a panel's weights are read whatever the rows.
int64_t PanelsPerThread(int64_t rows, int64_t inputs) {
  constexpr int64_t kWorthAThread = 1 << 20, kRowsOfReading = 16;
  return std::max<int64_t>(1, kWorthAThread / ((rows + kRowsOfReading) * inputs * kPanelOutputs));
}

// AsMatrix, with as many inputs as panels have.
at::Tensor PaddedRows(const at::Tensor& rows) {
  const int64_t missing = Padded(rows.size(-1)) - rows.size(-1);
  return AsMatrix(missing > 0 ? at::constant_pad_nd(rows, {0, missing}) : rows);
}

std::vector<int64_t> ResultSizes(const at::Tensor& rows, int64_t outputs) {
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes.back() = outputs;
  return sizes;
}

// Finishes results from (row, output) on.
class Finish final {
 public:
  explicit Finish(const ProductEnd& end)
      : bias_(end.bias), added_(end.added.defined() ? AsMatrix(end.added) : end.added), gelu_(end.gelu) {}

  void operator()(int64_t row, int64_t output, const cpu::HeadRows<float>& results, int64_t count,
                  int64_t columns) const {
    cpu::Summands summands;
    if (bias_.defined()) summands.bias = bias_.const_data_ptr<float>() + output;
    if (added_.defined())
      summands.rows = {added_.const_data_ptr<float>() + row * added_.stride(0) + output, added_.stride(0)};
    cpu::FinishProduct(results, count, columns, summands, gelu_);
  }

 private:
  const at::Tensor bias_, added_;
  const bool gelu_;
};

// Divides a product into blocks of rows that fit half of the L2 cache, times panels, for several threads. Each calls
// thread(for_each_block), which calls for_each_block(work), and that work(panel, first row, end row).
template <typename Thread>
void DivideWork(int64_t rows, int64_t inputs, int64_t panels, const Thread& thread) {
  const int64_t cached = CachedRows(inputs);
  const int64_t grain = PanelsPerThread(std::min(rows, cached), inputs);
  at::parallel_for(0, Parts(rows, cached) * panels, grain, [&](int64_t begin, int64_t end) {
    thread([&](const auto& work) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first_row = task / panels * cached;
        work(task % panels, first_row, std::min(first_row + cached, rows));
      }
    });
  });
}

// Rounds a matrix to [RowsOfKernels, padded inputs]; the padding is 0.
at::Tensor RoundedRows(const at::Tensor& matrix) {
  const int64_t rows = matrix.size(0), inputs = matrix.size(1), stride = Padded(inputs);
  at::Tensor rounded = at::empty({RowsOfKernels(rows), stride}, at::kBFloat16);
  auto* const to = reinterpret_cast<cpu::BFloat16*>(rounded.mutable_data_ptr<at::BFloat16>());
  at::parallel_for(0, rows, std::max<int64_t>(1, kRoundedPerThread / inputs), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu::RoundToBFloat16(matrix.const_data_ptr<float>() + row * matrix.stride(0), inputs, to + row * stride);
      std::fill_n(to + row * stride + inputs, stride - inputs, cpu::BFloat16{});
    }
  });
  std::fill_n(to + rows * stride, rounded.numel() - rows * stride, cpu::BFloat16{});
  return rounded;
}

// The product with a matrix of `outputs` outputs.
//   block        the inputs of a call of panel_pairs: a multiple of kGroupInputs, or all
//   panel_pairs  (panel, first input, inputs, scratch) -> the weights [inputs / 2][kPanelOutputs][2], which may be in
//                scratch
template <typename PanelPairs>
at::Tensor MultiplyByKernels(const at::Tensor& rows, int64_t outputs, const ProductEnd& end, int64_t block,
                             int64_t scratch_numbers, const PanelPairs& panel_pairs) {
  const at::Tensor matrix = AsMatrix(rows);
  const int64_t count = matrix.size(0), inputs = Padded(matrix.size(1)), panels = Parts(outputs, kPanelOutputs);
  const at::Tensor rounded = RoundedRows(matrix);
  at::Tensor result = at::empty({rounded.size(0), outputs}, matrix.options());
  const auto* const from = rounded.const_data_ptr<at::BFloat16>();
  auto* const to = result.mutable_data_ptr<float>();
  const Finish finish(end);
  const auto multiply = [&](int64_t panel, int64_t first_row, int64_t end_row, cpu::BFloat16* scratch) {
    const int64_t first_output = panel * kPanelOutputs, width = std::min(kPanelOutputs, outputs - first_output);
    for (int64_t input = 0; input < inputs; input += block) {
      const int64_t depth = std::min(block, inputs - input);
      const auto* const weights = reinterpret_cast<const at::BFloat16*>(panel_pairs(panel, input, depth, scratch));
      for (int64_t row = first_row; row < end_row; row += kBlockRows) {
        at::native::cpublas::brgemm(KernelRows(std::min(kBlockRows, end_row - row)), width, depth, inputs,
                                    kPanelOutputs, outputs, /*add_C=*/input > 0, from + row * inputs + input, weights,
                                    to + row * outputs + first_output);
        if (input + depth < inputs) continue;
        finish(row, first_output, {to + row * outputs + first_output, outputs}, std::min(kBlockRows, end_row - row),
               width);
      }
    }
  };
  DivideWork(count, inputs, panels, [&](const auto& for_each_block) {
    std::vector<cpu::BFloat16> scratch(scratch_numbers);
    for_each_block([&](int64_t panel, int64_t first_row, int64_t end_row) {
      multiply(panel, first_row, end_row, scratch.data());
    });
    at::native::cpublas::brgemm_release();
  });
  return result.narrow(0, 0, count).view(ResultSizes(rows, outputs));
}

// weight [out, in] as panels [panels, kPanelOutputs, padded inputs], padded with 0.
at::Tensor InPanels(const at::Tensor& weight) {
  const int64_t outputs = weight.size(0), inputs = weight.size(1), panels = Parts(outputs, kPanelOutputs);
  at::Tensor padded = at::zeros({panels * kPanelOutputs, Padded(inputs)}, weight.options());
  padded.narrow(0, 0, outputs).narrow(1, 0, inputs).copy_(weight);
  return padded.view({panels, kPanelOutputs, -1});
}

}  // namespace

int64_t PanelMatrix::padded_inputs() const { return Padded(inputs()); }

at::Tensor PanelMatrix::MultiplyWidened(const at::Tensor& rows, const ProductEnd& end) const {
  const Finish finish(end);
  const at::Tensor matrix = PaddedRows(rows);
  const int64_t count = matrix.size(0), depth = padded_inputs(), panels = Parts(outputs(), kPanelOutputs);
  at::Tensor result = at::empty({count, outputs()}, matrix.options());
  const at::Tensor widened = at::empty({depth, std::min(panels, kWidenedPanels) * kPanelOutputs}, at::kFloat);
  for (int64_t first = 0; first < panels; first += kWidenedPanels) {
    const int64_t here = std::min(kWidenedPanels, panels - first), first_output = first * kPanelOutputs;
    const int64_t width = std::min(here * kPanelOutputs, outputs() - first_output);
    at::parallel_for(0, here, PanelsPerThread(0, depth), [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        Widen(first + panel, {widened.mutable_data_ptr<float>() + panel * kPanelOutputs, widened.stride(0)});
      }
    });
    at::Tensor product = result.narrow(1, first_output, width);
    at::mm_out(product, matrix, widened.narrow(1, 0, width));
    at::parallel_for(0, count, PanelsPerThread(0, width), [&](int64_t first_row, int64_t end_row) {
      finish(first_row, first_output, {product.mutable_data_ptr<float>() + first_row * outputs(), outputs()},
             end_row - first_row, width);
    });
  }
  return result.view(ResultSizes(rows, outputs()));
}

BFloat16Panels::BFloat16Panels(const at::Tensor& weight, bool widens)
    : PanelMatrix(weight.size(0), weight.size(1)),
      widens_(widens),
      pairs_(InPanels(weight).unflatten(2, {-1, 2}).transpose(1, 2).contiguous()) {}

const cpu::BFloat16* BFloat16Panels::Pairs(int64_t panel) const {
  const auto* const pairs = reinterpret_cast<const cpu::BFloat16*>(pairs_.const_data_ptr<at::BFloat16>());
  return pairs + panel * padded_inputs() * kPanelOutputs;
}

void BFloat16Panels::Widen(int64_t panel, const cpu::HeadRows<float>& weights) const {
  cpu::WidenPairs(Pairs(panel), padded_inputs(), weights);
}

at::Tensor BFloat16Panels::Multiply(const at::Tensor& rows, const ProductEnd& end) const {
  if (widens_ && rows.numel() / inputs() >= kManyRows) return MultiplyWidened(rows, end);
  return MultiplyByKernels(rows, outputs(), end, /*block=*/padded_inputs(), /*scratch_numbers=*/0,
                           [this](int64_t panel, int64_t, int64_t, cpu::BFloat16*) { return Pairs(panel); });
}

Int8Panels::Int8Panels(const at::Tensor& weight, Rows rows) : PanelMatrix(weight.size(0), weight.size(1)), rows_(rows) {
  const at::Tensor panels = InPanels(weight);
  const int64_t depth = panels.size(2);
  numbers_.resize(panels.numel());
  scales_.resize(panels.size(0) * groups() * kPanelOutputs);
  if (rows == Rows::kInt8) corrections_.resize(scales_.size());
  for (int64_t row = 0; row < panels.size(0) * kPanelOutputs; ++row) {
    const int64_t panel = row / kPanelOutputs, output = row % kPanelOutputs;
    const float* const weights = panels.const_data_ptr<float>() + row * depth;
    for (int64_t group = 0; group < groups(); ++group) {
      const int64_t begin = group * kGroupInputs, end = std::min(begin + kGroupInputs, depth);
      float largest = 0;
      for (int64_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(weights[i]));
      constexpr float kLargest = 127;
      const float scale = largest / kLargest;
      const int64_t index = (panel * groups() + group) * kPanelOutputs + output;
      scales_[index] = scale;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t word = (panel * depth + i / kWordInputs * kWordInputs) * kPanelOutputs + output * kWordInputs;
        const auto number = static_cast<int8_t>(scale == 0 ? 0 : std::nearbyint(weights[i] / scale));
        numbers_[word + i % kWordInputs] = number;
        if (rows == Rows::kInt8) corrections_[index] -= 128 * number;
      }
    }
  }
}

int64_t Int8Panels::groups() const { return Parts(padded_inputs(), kGroupInputs); }

cpu::Int8Panel Int8Panels::Panel(int64_t panel, int64_t first_input, int64_t count) const {
  return {.numbers = numbers_.data() + (panel * padded_inputs() + first_input) * kPanelOutputs,
          .scales = scales_.data() + (panel * groups() + first_input / kGroupInputs) * kPanelOutputs,
          .inputs = count};
}

void Int8Panels::Widen(int64_t panel, const cpu::HeadRows<float>& weights) const {
  cpu::WidenInt8(Panel(panel, 0, padded_inputs()), weights);
}

at::Tensor Int8Panels::Multiply(const at::Tensor& rows, const ProductEnd& end) const {
  if (rows_ == Rows::kInt8) return MultiplyInt8Rows(rows, end);
  const int64_t count = rows.numel() / inputs();
  if (count < (rows_ == Rows::kBFloat16 ? kRowsForTiles : kManyRows)) return MultiplyFewRows(rows, end);
  if (rows_ == Rows::kFloat) return MultiplyWidened(rows, end);
  return MultiplyByKernels(rows, outputs(), end, kWidenedInputs, kWidenedInputs * kPanelOutputs,
                           [&](int64_t panel, int64_t first_input, int64_t count, cpu::BFloat16* scratch) {
                             cpu::WidenToPairs(Panel(panel, first_input, count), scratch);
                             return scratch;
                           });
}

at::Tensor Int8Panels::MultiplyFewRows(const at::Tensor& rows, const ProductEnd& end) const {
  const at::Tensor matrix = PaddedRows(rows);
  const int64_t count = matrix.size(0), depth = padded_inputs(), panels = Parts(outputs(), kPanelOutputs);
  at::Tensor result = at::empty({count, panels * kPanelOutputs}, matrix.options());
  const Finish finish(end);
  at::parallel_for(0, panels, PanelsPerThread(count, depth), [&](int64_t first, int64_t last) {
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t output = panel * kPanelOutputs;
      const cpu::HeadRows<float> to = {result.mutable_data_ptr<float>() + output, result.stride(0)};
      cpu::MultiplyInt8(Panel(panel, 0, depth), {matrix.const_data_ptr<float>(), matrix.stride(0)}, count, to);
      finish(0, output, to, count, std::min(kPanelOutputs, outputs() - output));
    }
  });
  return result.narrow(1, 0, outputs()).contiguous().view(ResultSizes(rows, outputs()));
}

at::Tensor Int8Panels::MultiplyInt8Rows(const at::Tensor& rows, const ProductEnd& end) const {
  const at::Tensor matrix = AsMatrix(rows);
  const int64_t count = matrix.size(0), panels = Parts(outputs(), kPanelOutputs), stride = groups() * kGroupInputs;
  const at::Tensor numbers = at::empty({count, stride}, at::kByte), scales = at::empty({count, groups()}, at::kFloat);
  at::parallel_for(0, count, std::max<int64_t>(1, kRoundedPerThread / stride), [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      cpu::RoundToInt8(matrix.const_data_ptr<float>() + row * matrix.stride(0), inputs(),
                       numbers.mutable_data_ptr<uint8_t>() + row * stride,
                       scales.mutable_data_ptr<float>() + row * groups());
    }
  });
  at::Tensor result = at::empty({count, panels * kPanelOutputs}, matrix.options());
  const Finish finish(end);
  DivideWork(count, inputs(), panels, [&](const auto& for_each_block) {
    for_each_block([&](int64_t panel, int64_t first_row, int64_t end_row) {
      const int64_t output = panel * kPanelOutputs;
      const cpu::HeadRows<float> to = {result.mutable_data_ptr<float>() + first_row * result.stride(0) + output,
                                       result.stride(0)};
      cpu::MultiplyInt8Rows(Panel(panel, 0, padded_inputs()), corrections_.data() + panel * groups() * kPanelOutputs,
                            {.numbers = numbers.const_data_ptr<uint8_t>() + first_row * stride,
                             .scales = scales.const_data_ptr<float>() + first_row * groups(),
                             .groups = groups()},
                            end_row - first_row, to);
      finish(first_row, output, to, end_row - first_row, std::min(kPanelOutputs, outputs() - output));
    });
  });
  return result.narrow(1, 0, outputs()).contiguous().view(ResultSizes(rows, outputs()));
}

}  // namespace longshort::models
