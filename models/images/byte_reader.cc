#include "models/images/byte_reader.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort {

absl::StatusOr<uint64_t> ByteReader::Number(uint64_t offset, int length) const {
  LS_ASSIGN_OR_RETURN(const std::string_view slice, Slice(offset, static_cast<uint64_t>(length)));
  return ReadNumber(slice, order_);
}

absl::StatusOr<std::string_view> ByteReader::Slice(uint64_t offset, uint64_t length) const {
  if (offset > bytes_.size() || length > bytes_.size() - offset) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the image is truncated: it has %d bytes, and %d more are said to follow byte %d",
                        bytes_.size(), length, offset));
  }
  return bytes_.substr(offset, length);
}

}  // namespace longshort
