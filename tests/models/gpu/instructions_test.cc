// Every instruction of device.h on the tested device: the emulator, or a GPU, which must give the same results.

#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/instruction_kernels.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::instructions_test {

class Instructions : public ::testing::Test {
 protected:
  std::vector<float> Counting(int count) {
    std::vector<float> numbers(count);
    for (int i = 0; i < count; ++i) numbers[i] = static_cast<float>(i);
    return numbers;
  }

  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};

TEST_F(Instructions, ReportWhereAThreadIs) {
  int* const places = arrays_.Make<int>(128 * 6);
  arrays_.Launch(WhereCall({places}));
  const std::vector<int> got = arrays_.Get(places, 128 * 6);
  for (int i = 0; i < 128; ++i) {
    const int thread = i % 64;
    EXPECT_THAT(std::vector<int>(got.begin() + 6 * i, got.begin() + 6 * i + 6),
                ::testing::ElementsAre(i / 64, 112, thread, thread % 32, thread / 32, 0));
  }
}

TEST_F(Instructions, ExchangeBetweenLanes) {
  const std::vector<float> in = Counting(32);
  float* const out = arrays_.Make<float>(96);
  arrays_.Launch(ExchangeCall({arrays_.Put(in), out}));
  const std::vector<float> got = arrays_.Get(out, 96);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[3 * lane], (lane + 1) % 32);
    EXPECT_EQ(got[3 * lane + 1], lane ^ 5);
    EXPECT_EQ(got[3 * lane + 2], static_cast<float>(3.0 / 3));
  }
}

TEST_F(Instructions, MeetAtBarriers) {
  const std::vector<float> in = Counting(96);
  float *const out = arrays_.Make<float>(96), *const out_of_warp = arrays_.Make<float>(96);
  arrays_.Launch(ReverseCall({arrays_.Put(in), out, out_of_warp}));
  const std::vector<float> got = arrays_.Get(out, 96), of_warp = arrays_.Get(out_of_warp, 96);
  for (int i = 0; i < 96; ++i) {
    EXPECT_EQ(got[i], 95 - i);
    EXPECT_EQ(of_warp[i], 2 * (i / 32 * 32 + 31 - i % 32));
  }
}

TEST_F(Instructions, CopyMemory) {
  std::vector<uint32_t> in(256);
  for (int i = 0; i < 256; ++i) in[i] = 1000 + i;
  uint32_t* const out = arrays_.Make<uint32_t>(7 * 128);
  arrays_.Launch(CopyWordsCall({arrays_.Put(in), out}));
  const std::vector<uint32_t> got = arrays_.Get(out, 7 * 128);
  for (int i = 0; i < 6 * 128; ++i) EXPECT_EQ(got[i], in[i % 128]);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(got[768 + i], i / 4 == 1 ? 0 : in[i]);
}

TEST_F(Instructions, LoadMatrices) {
  std::vector<uint16_t> in(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<uint16_t>(i);
  uint32_t* const out = arrays_.Make<uint32_t>(128);
  arrays_.Launch(LoadMatricesCall({arrays_.Put(in), out}));
  const std::vector<uint32_t> got = arrays_.Get(out, 128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const auto at = [&](int row, int column) { return static_cast<uint32_t>((8 * m + row) * 8 + column); };
      const int g = lane / 4, q = lane % 4;
      EXPECT_EQ(got[lane * 4 + m], at(2 * q, g) | at(2 * q + 1, g) << 16);
    }
  }
}

template <typename Element>
Element Drawn(std::mt19937_64& random) {
  // A number that TF32 represents exactly, too.
  return ElementOf<Element>(FloatOf(ToTf32(std::normal_distribution<float>()(random))));
}

template <typename Element>
void CheckProduct(DeviceArrays& arrays, ProductType type) {
  constexpr int kDepth = 32 / sizeof(Element);
  std::mt19937_64 random(1);
  std::vector<Element> a(16 * kDepth), b(8 * kDepth);
  for (Element& element : a) element = Drawn<Element>(random);
  for (Element& element : b) element = Drawn<Element>(random);
  std::vector<float> before(128);
  for (float& number : before) number = Drawn<float>(random);
  float* const d = arrays.Put(before);
  arrays.Launch(MultiplyCall(type, {arrays.Put(a), arrays.Put(b), d}));
  const std::vector<float> got = arrays.Get(d, 128);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double sum = before[row * 8 + column];
      for (int k = 0; k < kDepth; ++k) {
        sum += double{ToFloat(a[row * kDepth + k])} * ToFloat(b[column * kDepth + k]);
      }
      EXPECT_NEAR(got[row * 8 + column], sum, 4e-6);  // sums of 16 products up to about 8, in float32
    }
  }
}

TEST_F(Instructions, MultiplyMatrices) {
  CheckProduct<BFloat16>(arrays_, ProductType::kBFloat16);
  CheckProduct<float>(arrays_, ProductType::kTf32);
}

TEST_F(Instructions, ComputeNumbers) {
  std::mt19937_64 random(2);
  std::vector<float> in = RandomElements<float>(random, 200, 3);
  // Ties of bfloat16 and TF32, both ways.
  for (const uint32_t bits : {0x3f808000u, 0x3f818000u, 0x3f801000u, 0x3f803000u, 0xbf808000u, 0x3f802000u}) {
    in.push_back(std::bit_cast<float>(bits));
  }
  const auto count = static_cast<int>(in.size());
  float* const out = arrays_.Make<float>(int64_t{count} * kNumberFunctions);
  arrays_.Launch(NumbersCall({arrays_.Put(in), out, count}));
  const std::vector<float> got = arrays_.Get(out, int64_t{count} * kNumberFunctions);
  for (int i = 0; i < count; ++i) {
    const float x = in[i], y = in[count - 1 - i];
    const float* const results = got.data() + int64_t{i} * kNumberFunctions;
    const auto near = [&](int function, double expected, double units) {
      EXPECT_NEAR(results[function], expected, units * std::abs(expected) / (1 << 23)) << function << " of " << x;
    };
    EXPECT_EQ(results[0], ToFloat(ElementOf<BFloat16>(x)));
    EXPECT_EQ(std::bit_cast<uint32_t>(results[1]), PackBFloat16(x, y));
    EXPECT_EQ(std::bit_cast<uint32_t>(results[2]) >> 13, ToTf32(x) >> 13);
    EXPECT_EQ(results[3], x + y);
    EXPECT_EQ(results[4], x * y);
    EXPECT_EQ(results[5], std::fma(x, y, x));
    EXPECT_EQ(results[6], 1.0f / x);
    EXPECT_EQ(results[7], std::sqrt(x * x));
    EXPECT_EQ(results[8], std::fmax(x, y));
    EXPECT_EQ(std::bit_cast<uint32_t>(results[9]), std::bit_cast<uint32_t>(x) + 1);
    near(10, std::exp2(double{x}), 3);
    near(11, std::erf(double{x}), 4);
  }
}

}  // namespace longshort::models::cuda::instructions_test
