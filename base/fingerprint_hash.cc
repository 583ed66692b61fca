#include "base/fingerprint_hash.h"

#include <array>

#include "absl/strings/escaping.h"
#include "base/byte_order.h"
#include "base/status_macros.h"

namespace longshort {

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
