// Proof that an exported session's data is complete and was made by a server with the same key: a checksum and a MAC.
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

// Servers without a key neither export nor import sessions.
inline constexpr size_t kMinKeyBytes = 32;

// Reads the key from a file: all of its bytes, including a newline at the end.
// Errors: INVALID_ARGUMENT with the file's name if it cannot be read, is not kMinKeyBytes to 4096 bytes long, or if
// users other than its owner and group may read or write it.
absl::StatusOr<std::string> ReadSessionKey(const std::string& path);

struct Seal {
  std::string checksum;             // SHA-256 of the data
  std::string authentication_code;  // HMAC-SHA-256 of the data
};

// Makes the seal of data that arrives in pieces.
class SessionSealer final {
 public:
  // Errors of all functions: INTERNAL if the crypto library fails.
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

// Compares the seal `made` from received data with the seal `given` by the sender, in constant time.
// Errors: DATA_LOSS if the data was changed, PERMISSION_DENIED if it was sealed with another key.
absl::Status CheckSeal(const Seal& made, const Seal& given);

}  // namespace longshort::server
