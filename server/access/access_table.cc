#include "server/access/access_table.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"

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

}  // namespace longshort::server
