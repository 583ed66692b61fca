#include "tests/bench/gpu/peaks.h"

#include <functional>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/ops/layers/linear.h"

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

}  // namespace

nlohmann::json MeasurePeaks(const GoldenDevice& device, const PeakSizes& sizes) {
  const c10::InferenceMode inference;
  if (const int threads = device.devices.front().threads; threads > 0) models::UseThreads(threads);
  const at::TensorOptions on_device = at::TensorOptions().device(models::TensorDevice(device.devices.front()));
  const auto flops = [&](at::ScalarType type) {
    const at::Tensor a = at::randn({sizes.side, sizes.side}, on_device).to(type), b = at::randn_like(a);
    at::Tensor product = at::empty_like(a);
    const double products = RunsASecond(sizes.seconds, [&] { return at::mm_out(product, a, b); });
    const auto side = static_cast<double>(sizes.side);
    return products * 2 * side * side * side;
  };
  const at::Tensor from = at::zeros({sizes.copied_bytes}, on_device.dtype(at::kByte));
  at::Tensor to = at::empty_like(from);
  const double copies = RunsASecond(sizes.seconds, [&] { return to.copy_(from); });
  nlohmann::json peaks = {{"fp32_flops", flops(at::kFloat)},
                          {"copy_bytes", copies * 2 * static_cast<double>(sizes.copied_bytes)}};
  if (sizes.bfloat16) peaks["bf16_flops"] = flops(at::kBFloat16);
  return peaks;
}

}  // namespace longshort
