#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/weights/tensors.h"
#include "tests/base/status_matchers.h"

namespace longshort::models::tensor_values_test {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

// A file in memory that holds one tensor, whose data begin `shift` bytes from an aligned place.
class OneTensor final {
 public:
  OneTensor(DataType type, absl::Span<const std::byte> data, size_t shift = 0) {
    const std::string header = absl::StrFormat(R"({"t":{"dtype":"%s","shape":[%d],"data_offsets":[0,%d]}})",
                                               DataTypeName(type), 8 * data.size() / DataTypeBits(type), data.size());
    const std::string padding((8 - header.size() % 8) % 8 + shift, ' ');
    const uint64_t length = header.size() + padding.size();
    bytes_.assign(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes_ += header + padding;
    bytes_.append(reinterpret_cast<const char*>(data.data()), data.size());
  }

  absl::Status Read(absl::Span<float> values) const {
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Parse(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()), "memory");
    return file.ok() ? ReadAsFloat32(*file, *file->Find("t"), values) : file.status();
  }

 private:
  std::string bytes_;
};

template <typename Value>
absl::Span<const std::byte> AsBytes(const std::vector<Value>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(Value));
}

std::vector<float> Widen(DataType type, const std::vector<uint16_t>& halves) {
  std::vector<float> values(halves.size());
  EXPECT_THAT(OneTensor(type, AsBytes(halves)).Read(absl::MakeSpan(values)), IsOk());
  return values;
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
  std::vector<uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  const std::vector<float> widened = Widen(DataType::kF16, halves);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float expected = HalfByDefinition(static_cast<uint16_t>(bits)), actual = widened[bits];
    EXPECT_EQ(std::isnan(actual), std::isnan(expected)) << bits;
    EXPECT_TRUE(std::isnan(expected) || actual == expected) << bits;
    EXPECT_EQ(std::signbit(actual), bits >> 15 == 1) << bits;
  }
}

TEST(TensorValues, WidensBFloat16ToTheUpperHalfOfAFloat) {
  EXPECT_THAT(Widen(DataType::kBF16, {0x3F80, 0xC040, 0x0001, 0x7FC0}),
              ElementsAre(1.0f, -3.0f, std::ldexp(1.0f, -133), ::testing::IsNan()));
}

TEST(TensorValues, ReadsATensorOfSeveralPieces) {
  std::vector<uint16_t> halves(100'001);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i * 7919);
  const std::vector<float> widened = Widen(DataType::kBF16, halves);
  for (size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(widened[i]), uint32_t{halves[i]} << 16) << i;
  }
}

// The undefined-behaviour sanitizer watches the loads.
TEST(TensorValues, ReadsFromAnyAddress) {
  const std::vector<float> values = {1.5f, -2.0f, 3.25f};
  for (size_t shift = 0; shift < 8; ++shift) {
    std::vector<float> copied(values.size());
    ASSERT_THAT(OneTensor(DataType::kF32, AsBytes(values), shift).Read(absl::MakeSpan(copied)), IsOk());
    EXPECT_EQ(copied, values);
  }
}

TEST(TensorValues, RefusesOtherTypesAndOtherLengths) {
  const std::vector<std::byte> bytes(8);
  std::vector<float> values(2);
  EXPECT_THAT(OneTensor(DataType::kI32, bytes).Read(absl::MakeSpan(values)), Refuses(Words{"I32"}));
  EXPECT_THAT(OneTensor(DataType::kF16, bytes).Read(absl::MakeSpan(values)), Refuses(Words{"4 elements", "2"}));
}

}  // namespace longshort::models::tensor_values_test
