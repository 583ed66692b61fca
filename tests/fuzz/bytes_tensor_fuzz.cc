// Parses any bytes as the raw form of a tensor of BYTES. They are rejected, or the elements are the same bytes when
// they are written again. The first byte is the number of elements.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/fronts/open_inference/bytes_tensor.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  if (size == 0) return 0;
  const std::string_view raw(reinterpret_cast<const char*>(data + 1), size - 1);
  const int64_t elements = data[0] == 255 ? INT64_MAX : data[0];
  const absl::StatusOr<std::vector<std::string_view>> parsed = server::ParseBytesTensor(raw, elements);
  if (!parsed.ok()) {
    Require(parsed.status().code() == absl::StatusCode::kInvalidArgument, "what is no tensor is an invalid argument");
    return 0;
  }
  Require(static_cast<int64_t>(parsed->size()) == elements, "there are as many as were asked for");
  std::string again;
  for (const std::string_view element : *parsed) server::AppendBytesElement(element, again);
  Require(again == raw, "elements are the bytes");
  return 0;
}
