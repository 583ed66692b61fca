// Decompresses data in gzip's or zlib's format, which HTTP and gRPC call "gzip" and "deflate". The caller sets how much
// content there is at a time, and at most: a few bytes of data can hold a thousandfold of content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

struct z_stream_s;  // NOLINT(readability-identifier-naming): zlib's

namespace longshort {

class Inflater final {
 public:
  // Returns the next piece of the compressed data; empty at its end. A piece must stay valid until the next call.
  using Source = std::function<std::string_view()>;

  Inflater(Source source, int64_t max_bytes);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Writes the next bytes of the content to `buffer`, and returns how many: `size`, except at the end of the content.
  // Errors, after which it must not be called again:
  // - RESOURCE_EXHAUSTED: CheckInflation.
  // - INVALID_ARGUMENT: the data is damaged, incomplete, or followed by other bytes.
  // - INTERNAL: zlib has no memory.
  absl::StatusOr<size_t> Read(char* buffer, size_t size);

 private:
  absl::Status Step();

  const Source source_;
  const int64_t max_bytes_;
  int64_t bytes_ = 0;   // of the content, until now
  bool ended_ = false;  // the content is complete
  std::unique_ptr<z_stream_s> stream_;
};

// A decompressed text that grows. Its memory is charged before it is taken.
class InflatedText final {
 public:
  // Called with all bytes that the text takes from now on.
  using Charge = std::function<absl::Status(int64_t bytes)>;

  InflatedText(int64_t max_bytes, Charge charge) : max_bytes_(max_bytes), charge_(std::move(charge)) {}

  // Appends up to `size` bytes, which `write` writes to their place. Returns how many it wrote. Errors: those of
  // `charge` and of `write`.
  absl::StatusOr<size_t> Append(size_t size, const std::function<absl::StatusOr<size_t>(char* place)>& write);
  std::string Take() { return std::move(text_); }

 private:
  const int64_t max_bytes_;
  const Charge charge_;
  std::string text_;
};

// Whether `content` bytes from `packed` bytes of compressed data are allowed. Errors: RESOURCE_EXHAUSTED if they are
// more than `max_bytes`, or more than 1 MiB and than 100 times the compressed data: no honest data shrinks that much,
// and a few bytes would have the server work for long.
absl::Status CheckInflation(int64_t packed, int64_t content, int64_t max_bytes);

// The content of `packed`. Errors: as Inflater::Read and InflatedText.
absl::StatusOr<std::string> Inflate(std::string_view packed, int64_t max_bytes, InflatedText::Charge charge = nullptr);

// The content in gzip's format. `level`: 1 (fast) to 9 (small). nullopt if zlib has no memory.
std::optional<std::string> Gzip(std::string_view content, int level);

}  // namespace longshort
