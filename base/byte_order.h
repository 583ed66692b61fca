// Unsigned numbers as bytes, in either order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace longshort {

enum class ByteOrder { kBigEndian, kLittleEndian };

// Reads `bytes` as an unsigned number. REQUIRES: 1 to 8 bytes.
inline uint64_t ReadNumber(std::string_view bytes, ByteOrder order) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t place = order == ByteOrder::kBigEndian ? i : bytes.size() - 1 - i;  // the highest byte first
    value = value << 8 | static_cast<uint8_t>(bytes[place]);
  }
  return value;
}

// Writes `value` to the `length` bytes (1 to 8) at `bytes`.
inline void WriteNumber(uint64_t value, ByteOrder order, int length, char* bytes) {
  for (int i = 0; i < length; ++i, value >>= 8) {
    bytes[order == ByteOrder::kLittleEndian ? i : length - 1 - i] = static_cast<char>(value);
  }
}

}  // namespace longshort
