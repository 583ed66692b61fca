#include "ATen/Context.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/load_options.h"

namespace longshort::models::cuda_backends_test {

TEST(CudaBackends, LeaveLibTorchNoShorterNumbersThanItIsGiven) {
  MakeCudaBackends(std::make_shared<GpuLoss>());
  EXPECT_FALSE(at::globalContext().allowTF32CuDNN());
  EXPECT_FALSE(at::globalContext().allowTF32CuBLAS());
  EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(),
            at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK);
}

}  // namespace longshort::models::cuda_backends_test
