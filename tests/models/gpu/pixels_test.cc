// Normalisation of pixels on the tested device.

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/pixels/pixels_kernels.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::pixels_test {

constexpr int kImages = 2, kChannels = 3;

class GpuPixels : public ::testing::Test {
 protected:
  template <typename Pixel>
  std::vector<float> Normalise(const std::vector<Pixel>& pixels, int plane, bool misaligned = false) {
    float* const values = arrays_.Make<float>(static_cast<int64_t>(pixels.size()) + 1) + (misaligned ? 1 : 0);
    arrays_.Launch(NormalisePixelsCall({.are_bytes = arrays_.Put(std::vector<int32_t>{sizeof(Pixel) == 1}),
                                        .table = arrays_.Put(table_),
                                        .pixels = arrays_.Put(pixels),
                                        .images = kImages,
                                        .channels = kChannels,
                                        .plane = plane,
                                        .values = values}));
    return arrays_.Get(values, static_cast<int64_t>(pixels.size()));
  }

  std::mt19937_64 random_{1};
  const std::vector<float> table_ = RandomElements<float>(random_, kChannels * 256);
  const std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};

// Planes of less than a block, of several blocks, and that are not read four pixels at once.
TEST_F(GpuPixels, AByteBecomesTheValueOfItsChannel) {
  for (const int plane : {4, 4 * 128, 1000, 7, 131}) {
    std::vector<uint8_t> bytes;
    std::vector<float> expected;
    for (int i = 0; i < kImages * kChannels * plane; ++i) {
      bytes.push_back(static_cast<uint8_t>(random_()));
      expected.push_back(table_[i / plane % kChannels * 256 + bytes.back()]);
    }
    EXPECT_EQ(Normalise(bytes, plane), expected) << plane;
    EXPECT_EQ(Normalise(bytes, plane, /*misaligned=*/true), expected) << plane;
  }
}

TEST_F(GpuPixels, ValuesAreCopied) {
  for (const int plane : {8, 9}) {
    const std::vector<float> values = RandomElements<float>(random_, kImages * kChannels * plane);
    EXPECT_EQ(Normalise(values, plane), values) << plane;
  }
}

}  // namespace longshort::models::cuda::pixels_test
