#include "base/sha256.h"

#include <openssl/evp.h>

namespace longshort {
namespace {

absl::Status Failed() { return absl::InternalError("SHA-256 failed in the crypto library"); }

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

absl::StatusOr<Sha256> Sha256::Create() {
  Sha256 hash;
  hash.context_.reset(EVP_MD_CTX_new());
  if (hash.context_ == nullptr || EVP_DigestInit_ex(hash.context_.get(), EVP_sha256(), nullptr) != 1) return Failed();
  return hash;
}

absl::Status Sha256::Update(std::string_view bytes) {
  return EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1 ? absl::OkStatus() : Failed();
}

absl::StatusOr<std::string> Sha256::Finish() {
  std::string digest(kDigestBytes, '\0');
  if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) != 1) {
    return Failed();
  }
  return digest;
}

}  // namespace longshort
