// Certificates, key and revocation lists of the server: read from files, checked together, and reloaded when the files
// change.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_watch.h"
#include "base/mutex.h"
#include "base/pem_files.h"
#include "server/access/tls_files.h"

namespace longshort::server {

// Thread: immutable, so any thread may use it.
class TlsMaterial final {
 public:
  // Errors: INVALID_ARGUMENT naming option, file and reason: an option without one that it needs; a file that cannot
  // be read or has other content; a key that belongs to another certificate or is readable by all users; a certificate
  // that is expired, not yet valid, or too weak for TLS; an authority without a revocation list.
  static absl::StatusOr<std::shared_ptr<const TlsMaterial>> Load(const TlsFiles& files, absl::Time now);

  // PEM of key and certificates, in this order.
  std::string IdentityPem() const { return ToPem(*identity_.key) + ToPem(identity_.chain); }
  // PEM of the clients' authorities; empty if clients need no certificate.
  std::string ClientAuthoritiesPem() const { return ToPem(client_authorities_); }

  bool asks_clients() const { return !client_authorities_.empty(); }

  // Makes the connection present the certificate, and verify the client's by the authorities and lists, if there are
  // authorities. False if OpenSSL is out of memory.
  bool Use(SSL& connection) const;

  // Checks a client's certificate again, which OpenSSL found valid when the connection or its TLS session began.
  // `chain_pem`: the certificates that the client sent with it. Errors: UNAUTHENTICATED with the reason (for example
  // revoked, expired, or an expired revocation list).
  absl::Status CheckClient(std::string_view certificate_pem, std::string_view chain_pem) const;

  const X509& certificate() const { return *identity_.chain.front(); }
  // Earliest expiry in the server's certificate chain.
  absl::Time certificate_expiry() const;
  // Latest expiry of the clients' authorities, and earliest expiry of their revocation lists; InfiniteFuture without
  // any.
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
  // OpenSSL's error code for a client's certificate alone: its expiry and its revocation.
  int CheckAlone(X509& certificate) const;
  // Checks that OpenSSL accepts the certificate and its key.
  absl::Status TryIdentity(const PemFile& file) const;

  PemPair identity_;
  std::unique_ptr<STACK_OF(X509), Free> above_;  // identity_.chain without its first
  std::vector<Certificate> client_authorities_;
  std::vector<RevocationList> revocation_lists_;
  std::unique_ptr<X509_STORE, Free> client_store_;  // authorities and lists
};

// Reloads the TLS files when they change. A FileWatch waits until a change has settled, so the two files of a pair
// need not be written at the same moment. Wrong files change nothing.
class TlsWatch final {
 public:
  // Called by the watch's thread; `publish` by Start, too.
  struct Handlers {
    // Publishes the material before current() returns it. On an error it is not used.
    std::function<absl::Status(const TlsMaterial&)> publish;
    // The material is now in use.
    std::function<void(const TlsMaterial&)> replaced;
    // The files are wrong. Called once for each error.
    std::function<void(const absl::Status&)> broken;
  };

  // Errors: those of TlsMaterial::Load and of `publish`; RESOURCE_EXHAUSTED if the system has no thread.
  static absl::StatusOr<std::unique_ptr<TlsWatch>> Start(const TlsFiles& files, Handlers handlers);

  // Thread-safe.
  std::shared_ptr<const TlsMaterial> current() const;

 private:
  explicit TlsWatch(Handlers handlers) : handlers_(std::move(handlers)) {}

  absl::Status Publish(std::shared_ptr<const TlsMaterial> material);

  const Handlers handlers_;
  mutable Mutex mutex_;
  std::shared_ptr<const TlsMaterial> current_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<FileWatch> watch_;  // last: its thread uses the other members
};

}  // namespace longshort::server
