#include "server/access/access_table.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

constexpr absl::string_view kScheme = "Bearer ";
// Longer than any token of "longshort token new". Limits the bytes that the server hashes for an unknown client.
constexpr size_t kMaxTokenBytes = 512;

absl::Status NoCredentials() {
  return absl::UnauthenticatedError(
      "this server asks for a token: send it as metadata \"authorization: Bearer TOKEN\" (longshort "
      "--token-file=FILE); the server's operator makes tokens with \"longshort token new\"");
}

// RFC 6750: token68.
bool IsTokenCharacter(unsigned char c) {
  return absl::ascii_isalnum(c) || absl::string_view("-._~+/=").find(static_cast<char>(c)) != absl::string_view::npos;
}

absl::StatusOr<absl::string_view> BearerToken(const std::string& authorization) {
  absl::string_view token = authorization;
  const bool bearer = absl::StartsWithIgnoreCase(token, kScheme);
  if (bearer) token = absl::StripLeadingAsciiWhitespace(token.substr(kScheme.size()));
  if (bearer && !token.empty() && token.size() <= kMaxTokenBytes &&
      std::all_of(token.begin(), token.end(), IsTokenCharacter)) {
    return token;
  }
  return absl::UnauthenticatedError(absl::StrCat(
      "authorization is not of the form \"Bearer TOKEN\", once, with a token of 1 to ", kMaxTokenBytes, " characters"));
}

absl::Status CheckNotExpired(const Grant& grant, const char* what, absl::Time wall_now) {
  if (wall_now < grant.expires) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the ", what, " of ", grant.identity->name(), " expired at ",
                   absl::FormatTime(absl::RFC3339_sec, grant.expires, absl::UTCTimeZone()),
                   "; ask the server's operator for a new one"));
}

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

size_t AccessTable::DigestHash::operator()(const std::string& digest) const {
  size_t hash = 0;
  std::memcpy(&hash, digest.data(), std::min(sizeof(hash), digest.size()));
  return hash;
}

bool AccessTable::DigestEqual::operator()(const std::string& a, const std::string& b) const {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

AccessTable::AccessTable(const std::vector<AccessEntry>& entries, const IdentityOf& identity_of) {
  for (const AccessEntry& entry : entries) {
    auto grant = std::make_shared<const Grant>(Grant{.identity = identity_of(entry.name),
                                                     .scopes = entry.scopes,
                                                     .models = entry.models,
                                                     .max_priority = entry.max_priority,
                                                     .expires = entry.expires});
    switch (entry.kind) {
      case CredentialKind::kToken:
        tokens_.emplace(entry.credential, std::move(grant));
        break;
      case CredentialKind::kSpiffeId:
        spiffe_ids_.emplace(entry.credential, std::move(grant));
        break;
      case CredentialKind::kCertificateSubject:
        subjects_.emplace(entry.credential, std::move(grant));
        break;
    }
  }
}

absl::StatusOr<std::shared_ptr<const Grant>> AccessTable::Find(const Credentials& credentials,
                                                               absl::Time wall_now) const {
  if (credentials.authorization.has_value()) {
    LS_ASSIGN_OR_RETURN(const absl::string_view token, BearerToken(*credentials.authorization));
    LS_ASSIGN_OR_RETURN(const std::string digest, Sha256Of(std::string_view(token.data(), token.size())));
    const auto found = tokens_.find(digest);
    if (found == tokens_.end()) {
      return absl::UnauthenticatedError(
          "the token is unknown to this server: it is mistyped, revoked, or for another server");
    }
    LS_RETURN_IF_ERROR(CheckNotExpired(*found->second, "token", wall_now));
    return found->second;
  }
  const bool has_spiffe_id = !credentials.spiffe_id.empty();
  const std::string& name = has_spiffe_id ? credentials.spiffe_id : credentials.certificate_subject;
  if (name.empty() || !has_certificates()) return NoCredentials();
  const Grants& grants = has_spiffe_id ? spiffe_ids_ : subjects_;
  const auto found = grants.find(name);
  if (found == grants.end()) {
    return absl::UnauthenticatedError(absl::StrCat("the certificate's ", has_spiffe_id ? "SPIFFE id " : "subject ",
                                                   Quoted(name), " is in no line of this server's token file"));
  }
  LS_RETURN_IF_ERROR(CheckNotExpired(*found->second, "certificate's line", wall_now));
  return found->second;
}

std::string ClientAddress(std::string_view peer) {
  std::string_view address = peer.substr(0, peer.rfind(':'));
  if (!absl::StartsWith(absl::string_view(peer.data(), peer.size()), "ipv6:")) {
    return std::string(absl::StartsWith(absl::string_view(peer.data(), peer.size()), "ipv4:") ? address : peer);
  }
  std::string text = absl::StrReplaceAll(absl::string_view(address.data(), address.size()).substr(5),
                                         {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  in6_addr network{};
  if (inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &network) != 1) return std::string(peer);
  constexpr size_t kNetworkBytes = 8;
  if (!IN6_IS_ADDR_V4MAPPED(&network)) std::fill(network.s6_addr + kNetworkBytes, std::end(network.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> shown{};
  inet_ntop(AF_INET6, &network, shown.data(), shown.size());
  return absl::StrCat("ipv6:", shown.data());
}

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
