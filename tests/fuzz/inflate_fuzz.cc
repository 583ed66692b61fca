// Decompresses any bytes: they are rejected, or the content has at most the bytes allowed, and is the same when the
// data comes byte by byte.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/inflate.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  constexpr int64_t kMaxBytes = 100000;
  const std::string_view packed(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::string> content = Inflate(packed, kMaxBytes);
  size_t taken = 0;
  Inflater by_bytes([&] { return packed.substr(taken, 1).empty() ? std::string_view() : packed.substr(taken++, 1); },
                    kMaxBytes);
  std::string buffer(kMaxBytes + 1, '\0');
  const absl::StatusOr<size_t> read = by_bytes.Read(buffer.data(), buffer.size());
  Require(content.ok() == read.ok(), "pieces make no difference");
  if (!content.ok()) return 0;
  Require(static_cast<int64_t>(content->size()) <= kMaxBytes, "the content has no more than the maximum");
  Require(*content == buffer.substr(0, *read), "pieces make no difference to the content");
  return 0;
}
