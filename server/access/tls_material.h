// What the server needs for TLS, read from files and checked as a whole.
//
// Thread: immutable, so any thread may use it.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/pem_files.h"
#include "server/access/tls_files.h"

namespace longshort::server {

class TlsMaterial final {
 public:
  // Errors: INVALID_ARGUMENT naming option, file and reason: an option without the one that it needs; a file that
  // cannot be read or holds something else; a key of another certificate, or that everybody may read; what is expired,
  // not yet valid, or too weak for TLS; revocation lists that an authority is without.
  static absl::StatusOr<std::shared_ptr<const TlsMaterial>> Load(const TlsFiles& files, absl::Time now);

  // PEM of key and certificates, in this order.
  std::string IdentityPem() const;
  // PEM of the authorities of clients; empty if clients need no certificate.
  std::string ClientAuthoritiesPem() const;

  // Has this connection show the certificate. False if OpenSSL has no memory for that.
  bool Use(SSL& connection) const;

  // Whether a client's certificate, which OpenSSL has found to be valid when the connection or its session began, is
  // so now. `chain_pem`: what the client sent beside it.
  // Errors: UNAUTHENTICATED saying why not (revoked, expired, or a revocation list that is out of date, say).
  absl::Status CheckClient(std::string_view certificate_pem, std::string_view chain_pem) const;

  const X509& certificate() const { return *chain_.front(); }
  // When the first certificate of its chain expires.
  absl::Time certificate_expiry() const;
  // When the last of the clients' authorities, and the first of their revocation lists, does; InfiniteFuture if there
  // are none.
  absl::Time client_ca_expiry() const;
  absl::Time client_crl_expiry() const;

 private:
  struct Free {
    void operator()(X509_STORE* store) const { X509_STORE_free(store); }
    void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
  };

  TlsMaterial() = default;

  absl::Status LoadIdentity(const TlsFiles& files, absl::Time now);
  absl::Status LoadClientAuthorities(const PemFile& file, absl::Time now);
  absl::Status LoadRevocationLists(const PemFile& file, absl::Time now);
  bool has_revocation_lists() const { return !revocation_lists_.empty(); }
  void MakeClientStore();
  // What is wrong with a client's certificate by itself, as OpenSSL's number: its expiry and its revocation.
  int CheckAlone(X509& certificate) const;
  // Whether OpenSSL takes the certificate and its key.
  absl::Status TryIdentity(const PemFile& file) const;

  std::vector<Certificate> chain_;  // the server's own certificate first
  PrivateKey key_;
  std::unique_ptr<STACK_OF(X509), Free> above_;  // those of chain_ behind the first
  std::vector<Certificate> client_authorities_;
  std::vector<RevocationList> revocation_lists_;
  std::unique_ptr<X509_STORE, Free> client_store_;  // of both
};

}  // namespace longshort::server
