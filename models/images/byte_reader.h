// Numbers in an image's file that nobody has checked.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/byte_order.h"

namespace longshort {

// Reads unsigned numbers anywhere in `bytes`, which must outlive it.
class ByteReader final {
 public:
  ByteReader(std::string_view bytes, ByteOrder order) : bytes_(bytes), order_(order) {}

  std::string_view bytes() const { return bytes_; }
  ByteOrder order() const { return order_; }

  // The number of `length` bytes (1 to 8) at `offset`. Errors: INVALID_ARGUMENT if the bytes end before.
  absl::StatusOr<uint64_t> Number(uint64_t offset, int length) const;

  // The `length` bytes at `offset`. Errors: INVALID_ARGUMENT if the bytes end before.
  absl::StatusOr<std::string_view> Slice(uint64_t offset, uint64_t length) const;

 private:
  std::string_view bytes_;
  ByteOrder order_;
};

}  // namespace longshort
