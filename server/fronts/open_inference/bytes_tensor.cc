#include "server/fronts/open_inference/bytes_tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/byte_order.h"

namespace longshort::server {
namespace {

constexpr int kLengthBytes = 4;

}  // namespace

absl::StatusOr<std::vector<std::string_view>> ParseBytesTensor(std::string_view raw, int64_t elements) {
  std::vector<std::string_view> parsed;
  parsed.reserve(std::min(elements, static_cast<int64_t>(raw.size()) / kLengthBytes));
  std::string_view rest = raw;
  for (int64_t i = 0; i < elements; ++i) {
    if (rest.size() < kLengthBytes) {
      return absl::InvalidArgumentError(absl::StrCat("end within the length of element ", i, "; their shape has ",
                                                     elements, ", each of which is 4 bytes of length and its bytes"));
    }
    const uint64_t length = ReadNumber(rest.substr(0, kLengthBytes), ByteOrder::kLittleEndian);
    rest.remove_prefix(kLengthBytes);
    if (length > rest.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("say that element ", i, " has ", length, " bytes; they have ", rest.size(), " more"));
    }
    parsed.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (rest.empty()) return parsed;
  return absl::InvalidArgumentError(
      absl::StrCat("have ", rest.size(), " bytes after element ", elements - 1, ", the last of their shape"));
}

void AppendBytesElement(std::string_view element, std::string& raw) {
  char length[kLengthBytes];
  WriteNumber(element.size(), ByteOrder::kLittleEndian, kLengthBytes, length);
  raw.append(length, kLengthBytes);
  raw.append(element);
}

}  // namespace longshort::server
