#include "models/weights/tensors.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"

namespace longshort::models {
namespace {

std::string ShapeText(absl::Span<const int64_t> shape) { return absl::StrFormat("[%s]", absl::StrJoin(shape, ",")); }

// The file's float formats are read as the machine's.
static_assert(std::endian::native == std::endian::little);

template <typename Value>
absl::Span<std::byte> AsBytes(absl::Span<Value> values) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(Value));
}

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

// Reads piece by piece, so that a tensor is never in memory twice.
template <typename Widen>
absl::Status ReadHalves(const StoredBytes& bytes, int64_t offset, absl::Span<float> values, Widen widen) {
  constexpr size_t kPiece = size_t{1} << 15;
  std::vector<uint16_t> halves(std::min(kPiece, values.size()));
  while (!values.empty()) {
    const absl::Span<uint16_t> piece = absl::MakeSpan(halves).first(std::min(kPiece, values.size()));
    LS_RETURN_IF_ERROR(bytes.Read(offset, AsBytes(piece)));
    std::transform(piece.begin(), piece.end(), values.begin(), widen);
    offset += static_cast<int64_t>(AsBytes(piece).size());
    values.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

// All bits of the exponent are set only in infinities and NaNs.
bool IsFinite(float value) { return (std::bit_cast<uint32_t>(value) & 0x7F800000u) != 0x7F800000u; }

// Without branches, so that it takes no longer than reading the values.
bool AreFinite(absl::Span<const float> values) {
  uint32_t not_finite = 0;
  for (const float value : values) not_finite |= static_cast<uint32_t>(!IsFinite(value));
  return not_finite == 0;
}

}  // namespace

int64_t CountParameters(absl::Span<const TensorShape> tensors) {
  int64_t count = 0;
  for (const TensorShape& tensor : tensors) count += tensor.is_trained ? *ElementCount(tensor.shape) : 0;
  return count;
}

absl::Status CheckTensors(const SafetensorsFile& file, absl::Span<const TensorShape> expected) {
  const auto wrong = [&file](std::string_view tensor, std::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: tensor %s %s", file.name(), QuoteForMessage(tensor), reason));
  };
  std::set<std::string_view> known;
  for (const TensorShape& tensor : expected) {
    known.insert(tensor.name);
    const StoredTensor* found = file.Find(tensor.name);
    if (found == nullptr) return wrong(tensor.name, "is missing");
    if (found->shape != tensor.shape) {
      return wrong(tensor.name, absl::StrFormat("has shape %s, the configuration requires %s", ShapeText(found->shape),
                                                ShapeText(tensor.shape)));
    }
    if (!IsFloatType(found->type)) {
      return wrong(tensor.name, absl::StrFormat("has type %s; it must be F32, F16 or BF16", DataTypeName(found->type)));
    }
  }
  for (const auto& [name, tensor] : file.tensors()) {
    if (known.count(name) == 0 && !IsBufferType(tensor.type)) return wrong(name, "is unknown");
  }
  return absl::OkStatus();
}

bool IsFloatType(DataType type) { return type == DataType::kF32 || type == DataType::kF16 || type == DataType::kBF16; }

absl::Status ReadAsFloat32(const SafetensorsFile& file, const StoredTensor& tensor, absl::Span<float> values) {
  if (!IsFloatType(tensor.type)) {
    return absl::InvalidArgumentError(absl::StrFormat("type %s is not F32, F16 or BF16", DataTypeName(tensor.type)));
  }
  const auto elements = static_cast<size_t>(ElementCount(tensor.shape).value());
  if (values.size() != elements) {
    return absl::InvalidArgumentError(absl::StrFormat("%d elements, but space for %d", elements, values.size()));
  }
  if (tensor.type == DataType::kF16) return ReadHalves(file.bytes(), tensor.offset, values, FromFloat16);
  if (tensor.type == DataType::kBF16) return ReadHalves(file.bytes(), tensor.offset, values, FromBFloat16);
  return file.bytes().Read(tensor.offset, AsBytes(values));
}

absl::Status CheckFinite(const SafetensorsFile& file, const std::string& tensor, absl::Span<const float> values) {
  if (AreFinite(values)) return absl::OkStatus();
  const auto first = std::find_if_not(values.begin(), values.end(), IsFinite);
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: tensor %s has %d values that are infinite or not a number; the first, %g, is at index %d of %d", file.name(),
      tensor, std::count_if(first, values.end(), std::not_fn(IsFinite)), *first, first - values.begin(),
      values.size()));
}

}  // namespace longshort::models
