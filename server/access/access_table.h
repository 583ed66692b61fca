// The credentials of one version of the token file. Immutable, so any thread may read it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/schedule/work_attributes.h"
#include "server/access/identity.h"
#include "server/access/scopes.h"
#include "server/access/token_file.h"

struct x509_st;  // OpenSSL's X509

namespace longshort::server {

struct Grant;

// A call's credentials, as a protocol front received them. Not checked yet, except that a certificate is the peer's:
// TLS has verified that.
struct Credentials {
  // The value of `authorization`. Several values are joined with commas, as in HTTP, and are then not a valid token.
  std::optional<std::string> authorization = std::nullopt;
  // SPIFFE id and subject (RFC 2253) of the peer's certificate, if the connection uses mutual TLS.
  std::string spiffe_id = {};
  std::string certificate_subject = {};
  // What they grant, if the table was asked already.
  std::shared_ptr<const Grant> grant = nullptr;
};

// The rights of one credential. An admitted call keeps its grant after a new file removes it.
struct Grant {
  std::shared_ptr<Identity> identity;
  ScopeSet scopes;
  ModelPatterns models;
  core::Priority max_priority = core::Priority::kNormal;
  absl::Time expires;  // by the wall clock
};

class AccessTable final {
 public:
  // `identity_of` returns the identity of a name: the same object for all its lines, and in all tables.
  using IdentityOf = std::function<std::shared_ptr<Identity>(const std::string& name)>;
  AccessTable(const std::vector<AccessEntry>& entries, const IdentityOf& identity_of);

  // Finds the grant of the credentials. A token takes precedence over a certificate, because a proxy with its own
  // certificate forwards the tokens of its clients. A certificate's SPIFFE id takes precedence over its subject.
  // Errors: UNAUTHENTICATED saying what to do, without the credential; `wall_now` decides what has expired.
  absl::StatusOr<std::shared_ptr<const Grant>> Find(const Credentials& credentials, absl::Time wall_now) const;

  // Whether any line names a certificate. If not, callers need not read it from the connection.
  bool has_certificates() const { return !spiffe_ids_.empty() || !subjects_.empty(); }

 private:
  // Tokens are looked up by their SHA-256, compared in constant time. The table holds no tokens, so timing can only
  // leak hashes, and choosing a token by the first bytes of its hash is as hard as guessing. So a lookup may reveal by
  // its time whether the hash table's bucket, chosen by 8 bytes of the hash, is empty.
  struct DigestHash {
    size_t operator()(const std::string& digest) const;
  };
  struct DigestEqual {
    bool operator()(const std::string& a, const std::string& b) const;
  };
  using Grants = std::map<std::string, std::shared_ptr<const Grant>>;

  std::unordered_map<std::string, std::shared_ptr<const Grant>, DigestHash, DigestEqual> tokens_;
  Grants spiffe_ids_;
  Grants subjects_;
};

// The caller of a call, and what it may do. Immutable. A default-constructed Caller is anonymous: a server without
// authentication lets it do everything.
class Caller final {
 public:
  Caller() = default;
  explicit Caller(std::shared_ptr<const Grant> grant) : grant_(std::move(grant)) {}

  // Null for the anonymous caller, here and below.
  const std::shared_ptr<const Grant>& grant() const { return grant_; }
  Identity* identity() const { return grant_ == nullptr ? nullptr : grant_->identity.get(); }
  bool MayUseAllModels() const { return grant_ == nullptr || grant_->models.AllowAll(); }
  bool MayUse(const std::string& model) const { return grant_ == nullptr || grant_->models.Allow(model); }
  // Checks that the caller has the scope that `what` needs. Errors: PERMISSION_DENIED naming the scope.
  absl::Status CheckScope(Scope scope, const std::string& what) const;
  // Checks that calls of this caller may have the priority. Errors: PERMISSION_DENIED naming the token file's field.
  absl::Status CheckPriority(core::Priority priority) const;

 private:
  std::shared_ptr<const Grant> grant_;
};

// The part of a peer, in gRPC's form, that distinguishes clients: "ipv4:127.0.0.1" of "ipv4:127.0.0.1:40312". A client
// of IPv6 usually has a whole network of 64 bits: that network counts as one client.
std::string ClientAddress(std::string_view peer);

// The credentials in a verified certificate, as gRPC reports them for its own connections: its SPIFFE id, if it has
// one, and its subject (RFC 2253). Neither is set if its SPIFFE id is malformed or accompanied by another URI.
Credentials CredentialsOf(const x509_st& certificate);

}  // namespace longshort::server
