// SHA-256 of data in pieces, and of several named pieces of data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace longshort {

class Sha256 final {
 public:
  static constexpr size_t kDigestBytes = 32;

  // All functions return INTERNAL if the crypto library fails.
  static absl::StatusOr<Sha256> Create();

  absl::Status Update(std::string_view bytes);
  // Returns the kDigestBytes bytes of the digest. REQUIRES: the object is not used afterwards.
  absl::StatusOr<std::string> Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  Sha256() = default;

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// The kDigestBytes bytes of a text's digest. Errors: as Sha256.
absl::StatusOr<std::string> Sha256Of(std::string_view text);

// One SHA-256 over several named pieces of data. Their names and lengths are part of the hash.
class FingerprintHash final {
 public:
  // Errors: as Sha256.
  static absl::StatusOr<FingerprintHash> Create();

  // Adds `name` and `content`, each preceded by its length as 8 bytes, little-endian.
  absl::Status Add(std::string_view name, std::string_view content);
  // The same for a content of `bytes` bytes, which Continue adds in pieces.
  absl::Status Begin(std::string_view name, uint64_t bytes);
  absl::Status Continue(std::string_view piece) { return hash_.Update(piece); }
  // Returns the hash of all that was added, as 64 lower-case hex digits. REQUIRES: the object is not used afterwards.
  absl::StatusOr<std::string> Finish();

 private:
  explicit FingerprintHash(Sha256 hash) : hash_(std::move(hash)) {}

  absl::Status AddLength(uint64_t bytes);

  Sha256 hash_;
};

}  // namespace longshort
