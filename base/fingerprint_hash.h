// One SHA-256 over several named pieces of data, which cannot be mistaken for each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"

namespace longshort {

class FingerprintHash final {
 public:
  // Errors: INTERNAL if the crypto library refuses (the same for the other calls).
  static absl::StatusOr<FingerprintHash> Create();

  // Adds `name` and `content`, each preceded by its length as 8 bytes, little-endian.
  absl::Status Add(std::string_view name, std::string_view content);
  // The same for a content of so many bytes that follows in pieces.
  absl::Status Begin(std::string_view name, uint64_t bytes);
  absl::Status Continue(std::string_view piece) { return hash_.Update(piece); }
  // The hash of all that was added, 64 lower-case hex digits. The object is spent.
  absl::StatusOr<std::string> Finish();

 private:
  explicit FingerprintHash(Sha256 hash) : hash_(std::move(hash)) {}

  absl::Status AddLength(uint64_t bytes);

  Sha256 hash_;
};

}  // namespace longshort
