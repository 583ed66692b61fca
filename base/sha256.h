// SHA-256 over several pieces of data that cannot be mistaken for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace longshort {

class Sha256 final {
 public:
  // Errors: INTERNAL if the crypto library refuses (the same for the other calls).
  static absl::StatusOr<Sha256> Create();

  // Adds `name` and `content`, each preceded by its length as 8 bytes, little-endian.
  absl::Status Add(std::string_view name, std::string_view content);
  // The same for a content of so many bytes that follows in pieces.
  absl::Status Begin(std::string_view name, uint64_t bytes);
  absl::Status Continue(std::string_view piece) { return Update(piece); }
  // The hash of all that was added, 64 lower-case hex digits. The object is spent.
  absl::StatusOr<std::string> Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  Sha256() = default;

  absl::Status Update(std::string_view bytes);
  absl::Status UpdateLength(uint64_t bytes);

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace longshort
