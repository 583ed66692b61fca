#include "server/http_rpc/http_codec.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "server/rpc/message_size.h"

namespace longshort::server {

int64_t JsonMemory(std::string_view json, int64_t bytes_of_value) {
  constexpr int64_t kBytesOfElement = 256;  // as server/rpc/message_size.cc
  int64_t quotes = 0, objects = 0, values = 0;
  for (const char c : json) {
    quotes += c == '"' ? 1 : 0;
    objects += c == '{' ? 1 : 0;
    values += c == ',' || c == '[' || c == '{' ? 1 : 0;  // a list or an object is a value, too
  }
  // Each text is copied twice: out of the JSON, and into the message.
  return 2 * static_cast<int64_t>(json.size()) + kBytesOfElement * std::min(quotes / 2 + objects, kMaxElements) +
         bytes_of_value * values;
}

absl::StatusOr<absl::Time> ReadDeadline(const HttpRequest& request) {
  constexpr size_t kMaxDigits = 10;
  const std::optional<std::string> text = request.Find("connect-timeout-ms");
  if (!text.has_value()) return absl::InfiniteFuture();
  int64_t milliseconds = 0;
  if (text->size() > kMaxDigits || !absl::SimpleAtoi(*text, &milliseconds) || milliseconds < 0) {
    return absl::InvalidArgumentError("connect-timeout-ms must be a number of at most 10 digits: milliseconds");
  }
  return MonotonicNow() + absl::Milliseconds(milliseconds);
}

}  // namespace longshort::server
