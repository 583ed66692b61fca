// Proof that the data of an exported session are whole, and were made by a server with the same key.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"

struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX

namespace longshort::server {

// Of a server without one nothing is taken, and it seals nothing.
inline constexpr size_t kMinKeyBytes = 32;

// The key in a file: all of its bytes, a newline at the end too.
// Errors: INVALID_ARGUMENT naming the file, if it cannot be read, is shorter than kMinKeyBytes or longer than any
// key, or if users other than its owner and group may read or write it.
absl::StatusOr<std::string> ReadSessionKey(const std::string& path);

struct Seal {
  std::string checksum;             // SHA-256 of the data
  std::string authentication_code;  // HMAC-SHA-256 of the data
};

// Makes the seal of data that come in pieces.
class SessionSealer final {
 public:
  // Errors: INTERNAL if the crypto library fails; so everywhere here.
  static absl::StatusOr<SessionSealer> Create(std::string_view key);

  absl::Status Add(std::string_view data);
  // REQUIRES: called once, last.
  absl::StatusOr<Seal> Finish();

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  explicit SessionSealer(Sha256 checksum) : checksum_(std::move(checksum)) {}

  Sha256 checksum_;
  std::unique_ptr<evp_mac_ctx_st, Free> authentication_code_;
};

// Whether data that have the seal `made` may be sealed with `given`. Takes the same time wherever the codes differ.
// Errors: DATA_LOSS if the data were changed, PERMISSION_DENIED if they were sealed with another key.
absl::Status CheckSeal(const Seal& made, const Seal& given);

}  // namespace longshort::server
