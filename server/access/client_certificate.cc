#include "server/access/client_certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace longshort::server {
namespace {

std::vector<std::string> UrisOf(const X509& certificate) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  ERR_clear_error();
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

// spiffe://trust-domain/path, within the lengths of the specification.
bool IsSpiffeId(const std::string& uri) {
  constexpr size_t kMaxBytes = 2048, kMaxDomainBytes = 255, kParts = 4;
  const std::vector<std::string> parts = absl::StrSplit(uri, absl::MaxSplits('/', kParts - 1));
  return absl::StartsWith(uri, "spiffe://") && uri.size() <= kMaxBytes && parts.size() == kParts && !parts[2].empty() &&
         parts[2].size() <= kMaxDomainBytes && !parts[3].empty();
}

std::string Subject(const X509& certificate) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(BIO_new(BIO_s_mem()), BIO_free);
  if (text == nullptr) return "";
  X509_NAME_print_ex(text.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(text.get(), &data));
  return std::string(data, size);
}

}  // namespace

Credentials CredentialsOf(const X509& certificate) {
  const std::vector<std::string> uris = UrisOf(certificate);
  const bool has_spiffe = std::any_of(
      uris.begin(), uris.end(), [](const std::string& uri) { return absl::StartsWithIgnoreCase(uri, "spiffe:"); });
  Credentials credentials;
  if (has_spiffe && (uris.size() > 1 || !IsSpiffeId(uris.front()))) return credentials;
  if (has_spiffe) credentials.spiffe_id = uris.front();
  credentials.certificate_subject = Subject(certificate);
  return credentials;
}

}  // namespace longshort::server
