// Unsigned numbers as bytes, in either order.
#pragma once

#include <cstdint>
#include <string_view>

namespace longshort {

enum class ByteOrder { kBigEndian, kLittleEndian };

// The number that `bytes` are. REQUIRES: 1 to 8 bytes.
uint64_t ReadNumber(std::string_view bytes, ByteOrder order);

// Writes `value` at `bytes`, `length` bytes (1 to 8) long.
void WriteNumber(uint64_t value, ByteOrder order, int length, char* bytes);

}  // namespace longshort
