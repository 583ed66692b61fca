// The token file: one credential a line, with its identity and its rights.
//
//   # name  credential         rights
//   alice   token-sha256=9f86d081884c7d65...  scopes=infer,sessions  models=enwiki,vil-*  expires=2027-01-31
//   alice   token-sha256=60303ae22b998861...  scopes=infer,sessions
//   web     spiffe-id=spiffe://example.org/web  scopes=infer  calls-per-second=50  tokens-per-second=20000
//   backup  certificate-subject="CN=backup,O=Example Inc"  scopes=infer,sessions
//
// - A line begins with the identity's name. Lines with the same name are one identity: they share its sessions, its
//   part of the server, and its limits.
// - Fields follow in any order, each once. A value with spaces is in double quotes. In them, a backslash before a quote
//   is part of the value, as in RFC 2253.
// - Required: one of token-sha256 (64 hex digits), spiffe-id and certificate-subject; and scopes.
// - models: all models if absent. priority: high or normal, which is the default; the highest that calls may ask for.
// - expires: a day (its beginning, UTC), or a time such as 2027-01-31T12:00:00Z.
// - calls-per-second, tokens-per-second: limits of the identity, equal in all its lines.
// - Empty lines and lines that begin with # are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/schedule/work_attributes.h"
#include "server/access/identity.h"
#include "server/access/scopes.h"

namespace longshort::server {

enum class CredentialKind { kToken, kSpiffeId, kCertificateSubject };

// A line.
struct AccessEntry {
  std::string name;
  CredentialKind kind = CredentialKind::kToken;
  // The token's SHA-256 (32 bytes), the SPIFFE id, or the subject.
  std::string credential;
  ScopeSet scopes;
  ModelPatterns models;
  core::Priority max_priority = core::Priority::kNormal;
  IdentityLimits limits;
  absl::Time expires = absl::InfiniteFuture();
};

// `path` is for messages. Errors: INVALID_ARGUMENT naming file, line, field, value (except where it may be a token),
// and the valid values; also for a file without entries, which is probably half written.
absl::StatusOr<std::vector<AccessEntry>> ParseTokenFile(std::string_view text, const std::string& path);

// Reads the file. Errors: INVALID_ARGUMENT naming the file if it cannot be read, is over 16 MiB, or if users other
// than its owner and group may read or write it.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace longshort::server
