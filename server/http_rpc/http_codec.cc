#include "server/http_rpc/http_codec.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "base/clock.h"

namespace longshort::server {

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
