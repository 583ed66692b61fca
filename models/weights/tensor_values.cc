#include "models/weights/tensor_values.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_format.h"

namespace longshort {
namespace {

// The memory's float formats are used as they are in the file.
static_assert(std::endian::native == std::endian::little);

float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits.
float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {  // zero, or subnormal: fraction * 2^-24, which float32 holds as a normal number
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide_exponent = exponent == 0x1F ? 0xFFu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

template <typename Widen>
void CopyHalves(absl::Span<const std::byte> data, absl::Span<float> values, Widen widen) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, data.data() + i * sizeof(bits), sizeof(bits));
    values[i] = widen(bits);
  }
}

}  // namespace

bool IsFloatType(DataType type) { return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16; }

absl::Status CopyAsFloat32(const TensorView& tensor, absl::Span<float> values) {
  if (!IsFloatType(tensor.type)) {
    return absl::InvalidArgumentError(absl::StrFormat("type %s is not F32, F16 or BF16", DataTypeName(tensor.type)));
  }
  const size_t elements = tensor.data.size() / static_cast<size_t>(DataTypeBytes(tensor.type));
  if (values.size() != elements) {
    return absl::InvalidArgumentError(absl::StrFormat("%d elements do not fit room for %d", elements, values.size()));
  }
  if (tensor.type == DataType::kF16) {
    CopyHalves(tensor.data, values, FromFloat16);
  } else if (tensor.type == DataType::kBF16) {
    CopyHalves(tensor.data, values, FromBFloat16);
  } else if (!values.empty()) {
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  return absl::OkStatus();
}

}  // namespace longshort
