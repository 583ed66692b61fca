// Writes rows of numbers as a NumPy file (format 1.0): float32 of shape [rows, width].
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort::client {

// Not thread-safe.
class NpyFile final {
 public:
  // Replaces the file. Errors: NOT_FOUND naming the file and the reason.
  static absl::StatusOr<NpyFile> Create(const std::string& name, int64_t width);

  // REQUIRES: `width` numbers. Errors are reported by Finish.
  void Add(absl::Span<const float> row);
  // The row of an item that failed: NaN.
  void AddNothing();
  // Writes the number of rows. Without it, the file has none. Errors: INTERNAL if the file could not be written.
  absl::Status Finish();

 private:
  NpyFile(const std::string& name, int64_t width) : name_(name), width_(width), file_(name, std::ios::binary) {}

  std::string Header() const;

  std::string name_;
  int64_t width_;
  int64_t rows_ = 0;
  std::ofstream file_;
};

}  // namespace longshort::client
