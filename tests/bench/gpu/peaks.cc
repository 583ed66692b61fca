#include "tests/bench/gpu/peaks.h"

#include <functional>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/ops/layers/linear.h"
#include "tests/bench/gpu/device_tools.h"

namespace longshort {
namespace {

// Waits until the device has done what `tensor` comes from.
void WaitFor(const at::Tensor& tensor) { tensor.flatten()[0].to(at::kFloat).item<float>(); }

// Runs of `work` a second, in as long a row of them as `seconds` allow.
double RunsASecond(double seconds, const std::function<at::Tensor()>& work) {
  WaitFor(work());  // takes memory, and chooses kernels
  for (int64_t runs = 1;; runs *= 2) {
    const absl::Time begin = absl::Now();
    at::Tensor last;
    for (int64_t run = 0; run < runs; ++run) last = work();
    WaitFor(last);
    const double took = absl::ToDoubleSeconds(absl::Now() - begin);
    if (took >= seconds) return static_cast<double>(runs) / took;
  }
}

void UseThreadsOf(const GoldenDevice& device) {
  if (const int threads = device.devices.front().threads; threads > 0) models::UseThreads(threads);
}

at::TensorOptions On(const GoldenDevice& device) {
  return at::TensorOptions().device(models::TensorDevice(device.devices.front()));
}

// A product of two square matrices. Its result is overwritten by the next call.
std::function<at::Tensor()> Product(const GoldenDevice& device, int64_t side, at::ScalarType type) {
  const at::Tensor a = at::randn({side, side}, On(device)).to(type), b = at::randn_like(a);
  return [a, b, product = at::empty_like(a)]() mutable { return at::mm_out(product, a, b); };
}

}  // namespace

absl::Status MeasureProductInTurns(const GoldenDevice& device, const PeakSizes& sizes) {
  const c10::InferenceMode inference;
  UseThreadsOf(device);
  const auto product = Product(device, sizes.side, sizes.bfloat16 ? at::kBFloat16 : at::kFloat);
  WaitFor(product());
  return RunInTurns([&] {
    const absl::Time begin = absl::Now();
    WaitFor(product());
    return absl::ToDoubleSeconds(absl::Now() - begin);
  });
}

nlohmann::json MeasurePeaks(const GoldenDevice& device, const PeakSizes& sizes) {
  const c10::InferenceMode inference;
  UseThreadsOf(device);
  const auto flops = [&](at::ScalarType type) {
    const auto side = static_cast<double>(sizes.side);
    return RunsASecond(sizes.seconds, Product(device, sizes.side, type)) * 2 * side * side * side;
  };
  const at::TensorOptions on_device = On(device);
  const at::Tensor from = at::zeros({sizes.copied_bytes}, on_device.dtype(at::kByte));
  at::Tensor to = at::empty_like(from);
  const double copies = RunsASecond(sizes.seconds, [&] { return to.copy_(from); });
  nlohmann::json peaks = {{"fp32_flops", flops(at::kFloat)},
                          {"copy_bytes", copies * 2 * static_cast<double>(sizes.copied_bytes)}};
  if (sizes.bfloat16) peaks["bf16_flops"] = flops(at::kBFloat16);
  return peaks;
}

}  // namespace longshort
