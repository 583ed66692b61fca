// SHA-256 of data that come in pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace longshort {

class Sha256 final {
 public:
  static constexpr size_t kDigestBytes = 32;

  // Errors: INTERNAL if the crypto library refuses (the same for the other calls).
  static absl::StatusOr<Sha256> Create();

  absl::Status Update(std::string_view bytes);
  // The kDigestBytes bytes of the digest. The object is spent.
  absl::StatusOr<std::string> Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };

  Sha256() = default;

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace longshort
