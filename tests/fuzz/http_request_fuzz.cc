// Any bytes as the head of an HTTP request: refused, not whole yet, or a head that is the same whatever follows it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/http_request.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto head = ReadHttpRequest(bytes);
  if (!head.ok()) {
    Require(head.status().code() == absl::StatusCode::kInvalidArgument, "what is no request is an invalid argument");
    return 0;
  }
  if (!head->has_value()) return 0;
  Require((*head)->bytes <= size, "a head is within the bytes");
  Require((*head)->request.path.starts_with('/'), "a path begins with a slash");
  const auto again = ReadHttpRequest(std::string(bytes.substr(0, (*head)->bytes)) + "more");
  Require(again.ok() && again->has_value() && (*again)->bytes == (*head)->bytes, "a head ends where it ends");
  return 0;
}
