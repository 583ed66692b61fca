// Bounds-checked reads of numbers in an untrusted image file.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/byte_order.h"
#include "base/status_macros.h"

namespace longshort::models {

// Reads unsigned numbers at any offset in `bytes`, which must outlive the reader.
// Errors: INVALID_ARGUMENT if the bytes end too early.
class ByteReader final {
 public:
  ByteReader(std::string_view bytes, ByteOrder order) : bytes_(bytes), order_(order) {}

  std::string_view bytes() const { return bytes_; }

  // Reads the number in the `length` bytes (1 to 8) at `offset`.
  absl::StatusOr<uint64_t> Number(uint64_t offset, int length) const {
    LS_ASSIGN_OR_RETURN(const std::string_view slice, Slice(offset, static_cast<uint64_t>(length)));
    return ReadNumber(slice, order_);
  }

  // The `length` bytes at `offset`.
  absl::StatusOr<std::string_view> Slice(uint64_t offset, uint64_t length) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the image is truncated: it has %d bytes, but %d more should follow byte %d", bytes_.size(), length, offset));
    }
    return bytes_.substr(offset, length);
  }

 private:
  std::string_view bytes_;
  ByteOrder order_;
};

}  // namespace longshort::models
