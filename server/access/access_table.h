// Who may call, as one version of the token file says. Immutable: any thread may look.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/identity.h"
#include "server/access/scopes.h"
#include "server/access/token_file.h"

namespace longshort::server {

// What came with a call to prove who makes it, as a front read it. Nothing of it has been checked, except that a
// certificate is the peer's: the connection was refused otherwise.
struct Credentials {
  // The value of `authorization`. Several are joined with commas, as HTTP has it, and are no token then.
  std::optional<std::string> authorization = std::nullopt;
  // Of the peer's certificate, if the connection has mutual TLS: its SPIFFE id, and its subject (RFC 2253).
  std::string spiffe_id = {};
  std::string certificate_subject = {};
};

// What one credential gives. Calls that were admitted by it keep it when the file no longer has it.
struct Grant {
  std::shared_ptr<Identity> identity;
  ScopeSet scopes;
  ModelPatterns models;
  absl::Time expires;  // by the wall clock
};

class AccessTable final {
 public:
  // `identity_of` gives the identity of a name: the same one for each of its lines, and from table to table.
  using IdentityOf = std::function<std::shared_ptr<Identity>(const std::string& name)>;
  AccessTable(const std::vector<AccessEntry>& entries, const IdentityOf& identity_of);

  // Whom these credentials are of. A token counts before a certificate: a proxy with a certificate of its own forwards
  // the tokens of its clients. A certificate's SPIFFE id counts before its subject.
  // Errors: UNAUTHENTICATED saying what to do, without what was shown; `wall_now` decides what has expired.
  absl::StatusOr<std::shared_ptr<const Grant>> Find(const Credentials& credentials, absl::Time wall_now) const;

  // Whether certificates count at all: reading them from a connection takes its time.
  bool has_certificates() const { return !spiffe_ids_.empty() || !subjects_.empty(); }

 private:
  // Tokens are found by their SHA-256. What is compared with what was presented is compared in constant time, and no
  // secret is: of a token only the hash is here, and whoever wanted to learn one bit by bit would have to send tokens
  // whose hashes begin as he likes, which is as hard as guessing. So a hash table's bucket, which 8 bytes of the hash
  // choose, may tell by its time whether it is empty.
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

// Who makes a call, once that is known, and what it may do. Immutable. One that is default-made is anybody: on a server
// without authentication everybody may do everything.
class Caller final {
 public:
  Caller() = default;
  explicit Caller(std::shared_ptr<const Grant> grant) : grant_(std::move(grant)) {}

  // nullptr: nobody was asked for his name.
  Identity* identity() const { return grant_ == nullptr ? nullptr : grant_->identity.get(); }
  bool MayUseAllModels() const { return grant_ == nullptr || grant_->models.AllowAll(); }
  bool MayUse(const std::string& model) const { return grant_ == nullptr || grant_->models.Allow(model); }
  // Errors: PERMISSION_DENIED naming the scope; `what` needs it.
  absl::Status CheckScope(Scope scope, const std::string& what) const;

 private:
  std::shared_ptr<const Grant> grant_;
};

}  // namespace longshort::server
