#include "models/weights/tensor_values.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/weights/status_matchers.h"

namespace longshort {
namespace {

using Words = std::vector<std::string>;

float Widen(DataType type, uint16_t bits) {
  std::vector<std::byte> bytes(sizeof(bits));
  std::memcpy(bytes.data(), &bits, sizeof(bits));
  float value = 0;
  EXPECT_THAT(CopyAsFloat32({type, {1}, bytes}, absl::MakeSpan(&value, 1)), IsOk());
  return value;
}

// IEEE 754 binary16 by its definition, in arithmetic rather than bits.
float HalfByDefinition(uint16_t bits) {
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

TEST(TensorValues, WidensEveryHalfExactly) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float expected = HalfByDefinition(static_cast<uint16_t>(bits));
    const float actual = Widen(DataType::kF16, static_cast<uint16_t>(bits));
    EXPECT_EQ(std::isnan(actual), std::isnan(expected)) << bits;
    EXPECT_TRUE(std::isnan(expected) || actual == expected) << bits;
    EXPECT_EQ(std::signbit(actual), bits >> 15 == 1) << bits;
  }
}

TEST(TensorValues, WidensBFloat16ToTheUpperHalfOfAFloat) {
  EXPECT_EQ(Widen(DataType::kBF16, 0x3F80), 1.0f);
  EXPECT_EQ(Widen(DataType::kBF16, 0xC040), -3.0f);
  EXPECT_EQ(Widen(DataType::kBF16, 0x0001), std::ldexp(1.0f, -133));
  EXPECT_TRUE(std::isnan(Widen(DataType::kBF16, 0x7FC0)));
}

// The undefined-behaviour sanitizer watches the loads.
TEST(TensorValues, ReadsFromAnyAddress) {
  const std::vector<float> values = {1.5f, -2.0f, 3.25f};
  for (size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> bytes(shift + values.size() * sizeof(float));
    std::memcpy(bytes.data() + shift, values.data(), values.size() * sizeof(float));
    std::vector<float> copied(values.size());
    ASSERT_THAT(CopyAsFloat32({DataType::kF32, {3}, absl::MakeConstSpan(bytes).subspan(shift)}, absl::MakeSpan(copied)),
                IsOk());
    EXPECT_EQ(copied, values);
  }
}

TEST(TensorValues, RefusesOtherTypesAndOtherLengths) {
  const std::vector<std::byte> bytes(8);
  std::vector<float> values(2);
  EXPECT_THAT(CopyAsFloat32({DataType::kI32, {2}, bytes}, absl::MakeSpan(values)), Refuses(Words{"I32"}));
  EXPECT_THAT(CopyAsFloat32({DataType::kF16, {4}, bytes}, absl::MakeSpan(values)), Refuses(Words{"4 elements", "2"}));
}

}  // namespace
}  // namespace longshort
