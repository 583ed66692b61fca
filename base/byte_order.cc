#include "base/byte_order.h"

namespace longshort {
namespace {

// How far the byte at `index` of a number of `length` bytes is shifted.
int Shift(ByteOrder order, int length, int index) {
  return 8 * (order == ByteOrder::kLittleEndian ? index : length - 1 - index);
}

}  // namespace

uint64_t ReadNumber(std::string_view bytes, ByteOrder order) {
  const int length = static_cast<int>(bytes.size());
  uint64_t value = 0;
  for (int i = 0; i < length; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << Shift(order, length, i);
  }
  return value;
}

void WriteNumber(uint64_t value, ByteOrder order, int length, char* bytes) {
  for (int i = 0; i < length; ++i) bytes[i] = static_cast<char>(value >> Shift(order, length, i));
}

}  // namespace longshort
