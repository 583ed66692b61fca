#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "absl/strings/escaping.h"
#include "base/byte_order.h"
#include "base/status_macros.h"

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

absl::StatusOr<std::string> Sha256Of(std::string_view text) {
  LS_ASSIGN_OR_RETURN(Sha256 hash, Sha256::Create());
  LS_RETURN_IF_ERROR(hash.Update(text));
  return hash.Finish();
}

absl::StatusOr<FingerprintHash> FingerprintHash::Create() {
  LS_ASSIGN_OR_RETURN(Sha256 hash, Sha256::Create());
  return FingerprintHash(std::move(hash));
}

absl::Status FingerprintHash::AddLength(uint64_t bytes) {
  std::array<char, 8> length;
  WriteNumber(bytes, ByteOrder::kLittleEndian, length.size(), length.data());
  return hash_.Update({length.data(), length.size()});
}

absl::Status FingerprintHash::Add(std::string_view name, std::string_view content) {
  LS_RETURN_IF_ERROR(Begin(name, content.size()));
  return Continue(content);
}

absl::Status FingerprintHash::Begin(std::string_view name, uint64_t bytes) {
  LS_RETURN_IF_ERROR(AddLength(name.size()));
  LS_RETURN_IF_ERROR(hash_.Update(name));
  return AddLength(bytes);
}

absl::StatusOr<std::string> FingerprintHash::Finish() {
  LS_ASSIGN_OR_RETURN(const std::string digest, hash_.Finish());
  return absl::BytesToHexString(digest);
}

}  // namespace longshort
