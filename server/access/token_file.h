// The token file: who may call, with what, one credential a line.
//
//   # name  credential         what it may do
//   alice   token-sha256=9f86d081884c7d65...  scopes=infer,sessions  models=enwiki,vil-*  expires=2027-01-31
//   alice   token-sha256=60303ae22b998861...  scopes=infer,sessions
//   web     spiffe-id=spiffe://example.org/web  scopes=infer  calls-per-second=50  tokens-per-second=20000
//   scraper certificate-subject="CN=prometheus,O=Example Inc"  scopes=observe
//
// - First stands the identity's name. Several lines of one name are one identity: the same sessions, share and limits.
// - Fields follow in any order, each once. A value with spaces stands in double quotes; a backslash in front of a quote
//   inside belongs to the value, as in RFC 2253.
// - One of token-sha256 (64 hex digits), spiffe-id and certificate-subject, and scopes, must be there.
// - models: all models if it is absent. expires: a day (its beginning, UTC) or a time as in 2027-01-31T12:00:00Z.
// - calls-per-second, tokens-per-second: the identity's. All lines of a name say the same of them.
// - Lines that begin with # and empty ones are passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/identity.h"
#include "server/access/scopes.h"

namespace longshort::server {

enum class CredentialKind { kToken, kSpiffeId, kCertificateSubject };

// A line.
struct AccessEntry {
  std::string name;
  CredentialKind kind = CredentialKind::kToken;
  // The 32 bytes of the token's SHA-256, the SPIFFE id, or the subject.
  std::string credential;
  ScopeSet scopes;
  ModelPatterns models;
  IdentityLimits limits;
  absl::Time expires = absl::InfiniteFuture();
};

// `path` is for messages. Errors: INVALID_ARGUMENT naming file, line, field, value (never one that could be a token),
// and what it may be; also for a file without any line, which is more likely half written than meant.
absl::StatusOr<std::vector<AccessEntry>> ParseTokenFile(std::string_view text, const std::string& path);

// The text of the file. Errors: INVALID_ARGUMENT naming the file, if it cannot be read, is longer than any such file,
// or if users other than its owner and group may read or write it.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace longshort::server
