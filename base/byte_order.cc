#include "base/byte_order.h"

#include "absl/strings/str_format.h"

namespace longshort {
namespace {

// How far the byte at `index` of a number of `length` bytes is shifted.
int Shift(ByteOrder order, int length, int index) {
  return 8 * (order == ByteOrder::kLittleEndian ? index : length - 1 - index);
}

}  // namespace

absl::StatusOr<uint64_t> ByteReader::Number(uint64_t offset, int length) const {
  const auto slice = Slice(offset, static_cast<uint64_t>(length));
  if (!slice.ok()) return slice.status();
  uint64_t value = 0;
  for (int i = 0; i < length; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>((*slice)[i])) << Shift(order_, length, i);
  }
  return value;
}

absl::StatusOr<std::string_view> ByteReader::Slice(uint64_t offset, uint64_t length) const {
  if (offset > bytes_.size() || length > bytes_.size() - offset) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image is truncated: it has %d bytes, and %d more are said to follow byte %d",
                        bytes_.size(), length, offset));
  }
  return bytes_.substr(offset, length);
}

void WriteNumber(uint64_t value, ByteOrder order, int length, char* bytes) {
  for (int i = 0; i < length; ++i) bytes[i] = static_cast<char>(value >> Shift(order, length, i));
}

}  // namespace longshort
