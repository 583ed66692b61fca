#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "absl/strings/escaping.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

absl::Status Failed() { return absl::InternalError("SHA-256 failed in the crypto library"); }

std::array<char, 8> LittleEndian(uint64_t value) {
  std::array<char, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

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

absl::Status Sha256::UpdateLength(uint64_t bytes) {
  const std::array<char, 8> length = LittleEndian(bytes);
  return Update({length.data(), length.size()});
}

absl::Status Sha256::Add(std::string_view name, std::string_view content) {
  LS_RETURN_IF_ERROR(Begin(name, content.size()));
  return Continue(content);
}

absl::Status Sha256::Begin(std::string_view name, uint64_t bytes) {
  LS_RETURN_IF_ERROR(UpdateLength(name.size()));
  LS_RETURN_IF_ERROR(Update(name));
  return UpdateLength(bytes);
}

absl::StatusOr<std::string> Sha256::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int bytes = 0;
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), &bytes) != 1) return Failed();
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), bytes});
}

}  // namespace longshort
