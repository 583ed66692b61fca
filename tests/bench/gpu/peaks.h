// The peak rates of a device, measured with LibTorch's operations. Other times are compared with them.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"

namespace longshort {

struct PeakSizes {
  int64_t side = 8192;                      // of square matrices
  int64_t copied_bytes = int64_t{2} << 30;  // from one place of the device's memory to another
  double seconds = 1;                       // of each measurement, at least
  // Whether products of bfloat16 are measured, too. CPUs without instructions for them take minutes for one.
  bool bfloat16 = true;
};

// {"fp32_flops": ..., "bf16_flops": ... (if measured), "copy_bytes": ...}, all a second; a copied byte counts twice,
// read and written. Float32 products are float32's own (LibTorch's default), not TF32. Throws what LibTorch throws.
nlohmann::json MeasurePeaks(const GoldenDevice& device, const PeakSizes& sizes);

// RunInTurns, where a run is one product of square matrices of bfloat16 (sizes.bfloat16) or float32: a probe of what
// the device gives at a moment. Throws what LibTorch throws.
absl::Status MeasureProductInTurns(const GoldenDevice& device, const PeakSizes& sizes);

}  // namespace longshort
