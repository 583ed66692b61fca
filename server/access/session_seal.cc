#include "server/access/session_seal.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

// Longer files are surely not keys.
constexpr size_t kMaxKeyBytes = 4096;

absl::Status Failed() { return absl::InternalError("HMAC-SHA-256 failed in the crypto library"); }

bool IsSame(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

absl::StatusOr<std::string> ReadSessionKey(const std::string& path) {
  constexpr char kOption[] = "--session-key-file";
  LS_ASSIGN_OR_RETURN(std::string key, ReadSecretFile(kOption, path, kMaxKeyBytes));
  if (key.size() >= kMinKeyBytes) return key;
  return absl::InvalidArgumentError(absl::StrCat(kOption, "=", path, " has ", key.size(), " bytes; a key has ",
                                                 kMinKeyBytes, " to ", kMaxKeyBytes,
                                                 ", for example from head -c 32 /dev/urandom"));
}

void SessionSealer::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

absl::StatusOr<SessionSealer> SessionSealer::Create(std::string_view key) {
  LS_ASSIGN_OR_RETURN(Sha256 checksum, Sha256::Create());
  SessionSealer sealer(std::move(checksum));
  EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  sealer.authentication_code_.reset(hmac == nullptr ? nullptr : EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);  // the context holds it
  std::array<char, 7> digest = {"SHA256"};
  const std::array<OSSL_PARAM, 2> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0), OSSL_PARAM_construct_end()};
  if (sealer.authentication_code_ == nullptr ||
      EVP_MAC_init(sealer.authentication_code_.get(), reinterpret_cast<const unsigned char*>(key.data()), key.size(),
                   parameters.data()) != 1) {
    return Failed();
  }
  return sealer;
}

absl::Status SessionSealer::Add(std::string_view data) {
  LS_RETURN_IF_ERROR(checksum_.Update(data));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(data.data());
  return EVP_MAC_update(authentication_code_.get(), bytes, data.size()) == 1 ? absl::OkStatus() : Failed();
}

absl::StatusOr<Seal> SessionSealer::Finish() {
  Seal seal{.checksum = {}, .authentication_code = std::string(Sha256::kDigestBytes, '\0')};
  LS_ASSIGN_OR_RETURN(seal.checksum, checksum_.Finish());
  auto* const code = reinterpret_cast<unsigned char*>(seal.authentication_code.data());
  size_t written = 0;
  if (EVP_MAC_final(authentication_code_.get(), code, &written, Sha256::kDigestBytes) != 1 ||
      written != Sha256::kDigestBytes) {
    return Failed();
  }
  return seal;
}

absl::Status CheckSeal(const Seal& made, const Seal& given) {
  if (!IsSame(made.checksum, given.checksum)) {
    return absl::DataLossError("the session's data was changed: its checksum differs from the seal's");
  }
  if (!IsSame(made.authentication_code, given.authentication_code)) {
    return absl::PermissionDeniedError("the session was sealed by a server with another --session-key-file");
  }
  return absl::OkStatus();
}

}  // namespace longshort::server
