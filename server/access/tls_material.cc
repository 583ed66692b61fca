#include "server/access/tls_material.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

absl::Status CheckCombination(const TlsFiles& files) {
  const auto needs = [](std::string_view option, std::string_view other) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(option), " needs ", std::string(other), ", too"));
  };
  if (!files.certificate.empty() && files.key.empty()) return needs("--tls-certificate", "--tls-key");
  if (!files.key.empty() && files.certificate.empty()) return needs("--tls-key", "--tls-certificate");
  if (!files.client_ca.empty() && !files.enabled()) return needs("--tls-client-ca", "--tls-certificate and --tls-key");
  if (!files.client_crl.empty() && files.client_ca.empty()) return needs("--tls-client-crl", "--tls-client-ca");
  return absl::OkStatus();
}

bool IsListOf(X509_CRL* list, X509* authority) {
  if (X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority)) != 0) return false;
  const bool is_signed = X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1;
  ERR_clear_error();
  return is_signed;
}

bool Revokes(X509_CRL* list, X509& certificate) {
  X509_REVOKED* entry = nullptr;
  return X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_issuer_name(&certificate)) == 0 &&
         X509_CRL_get0_by_cert(list, &entry, &certificate) == 1;
}

bool AnyListRevokes(X509_STORE_CTX* check) {
  X509* const certificate = X509_STORE_CTX_get_current_cert(check);
  STACK_OF(X509_CRL)* const lists = X509_STORE_CTX_get1_crls(check, X509_get_issuer_name(certificate));
  bool revoked = false;
  for (int i = 0; i < sk_X509_CRL_num(lists); ++i) revoked |= Revokes(sk_X509_CRL_value(lists, i), *certificate);
  sk_X509_CRL_pop_free(lists, X509_CRL_free);
  return revoked;
}

// OpenSSL calls this for each certificate.
// - Ignores a missing revocation list for the topmost authority: the operator trusts it directly.
// - Refuses a certificate that any list of its authority revokes. OpenSSL asks only one of them.
int CheckLists(int is_right, X509_STORE_CTX* check) {
  if (is_right == 1 && AnyListRevokes(check)) {
    X509_STORE_CTX_set_error(check, X509_V_ERR_CERT_REVOKED);
    return 0;
  }
  const int top = sk_X509_num(X509_STORE_CTX_get0_chain(check)) - 1;
  const bool is_that = X509_STORE_CTX_get_error(check) == X509_V_ERR_UNABLE_TO_GET_CRL && top > 0 &&
                       X509_STORE_CTX_get_error_depth(check) == top;
  if (is_that) X509_STORE_CTX_set_error(check, X509_V_OK);
  return is_right == 1 || is_that ? 1 : 0;
}

absl::Time ExpiryOf(const X509_CRL& list) { return TimeOf(X509_CRL_get0_nextUpdate(&list)); }

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsMaterial>> TlsMaterial::Load(const TlsFiles& files, absl::Time now) {
  LS_RETURN_IF_ERROR(CheckCombination(files));
  std::shared_ptr<TlsMaterial> material(new TlsMaterial());
  LS_RETURN_IF_ERROR(material->LoadIdentity(files, now));
  if (!files.client_ca.empty()) {
    LS_RETURN_IF_ERROR(material->LoadClientAuthorities({.option = "--tls-client-ca", .path = files.client_ca}, now));
  }
  if (!files.client_crl.empty()) {
    LS_RETURN_IF_ERROR(material->LoadRevocationLists({.option = "--tls-client-crl", .path = files.client_crl}, now));
  }
  material->MakeClientStore();
  return material;
}

absl::Status TlsMaterial::LoadIdentity(const TlsFiles& files, absl::Time now) {
  const PemFile file = {.option = "--tls-certificate", .path = files.certificate};
  LS_ASSIGN_OR_RETURN(identity_, ReadPemPair(file, {.option = "--tls-key", .path = files.key}));
  for (const Certificate& certificate : identity_.chain) LS_RETURN_IF_ERROR(CheckValidity(file, *certificate, now));
  if (X509_check_purpose(identity_.chain.front().get(), X509_PURPOSE_SSL_SERVER, 0) != 1) {
    return file.Wrong(absl::StrCat("holds first the certificate ", SubjectOf(certificate()),
                                   ", whose (extended) key usage does not allow a server"));
  }
  above_.reset(sk_X509_new_null());
  for (size_t i = 1; i < identity_.chain.size(); ++i) sk_X509_push(above_.get(), identity_.chain[i].get());
  return TryIdentity(file);
}

absl::Status TlsMaterial::TryIdentity(const PemFile& file) const {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  ERR_clear_error();
  if (context != nullptr && SSL_CTX_use_cert_and_key(context.get(), identity_.chain.front().get(), identity_.key.get(),
                                                     above_.get(), 1) == 1) {
    return absl::OkStatus();
  }
  return file.Wrong(absl::StrCat("cannot be used for TLS: ", TakeOpensslError()));
}

absl::Status TlsMaterial::LoadClientAuthorities(const PemFile& file, absl::Time now) {
  LS_ASSIGN_OR_RETURN(client_authorities_, ReadCertificates(file));
  for (const Certificate& authority : client_authorities_) {
    if (X509_check_ca(authority.get()) == 0) {
      return file.Wrong(absl::StrCat("holds ", SubjectOf(*authority), ", which is not a CA certificate"));
    }
  }
  absl::Status why_not;
  for (const Certificate& authority : client_authorities_) {
    why_not = CheckValidity(file, *authority, now);
    // One of several authorities may have expired while they are being replaced.
    if (why_not.ok()) return why_not;
  }
  return why_not;
}

absl::Status TlsMaterial::LoadRevocationLists(const PemFile& file, absl::Time now) {
  LS_ASSIGN_OR_RETURN(revocation_lists_, ReadRevocationLists(file));
  for (const Certificate& authority : client_authorities_) {
    const bool has_list =
        std::any_of(revocation_lists_.begin(), revocation_lists_.end(),
                    [&](const RevocationList& list) { return IsListOf(list.get(), authority.get()); });
    if (has_list) continue;
    return file.Wrong(absl::StrCat("holds no list signed by ", SubjectOf(*authority), " of --tls-client-ca"));
  }
  if (client_crl_expiry() < now) {
    return file.Wrong(absl::StrCat("holds a list that expired at ",
                                   absl::FormatTime(absl::RFC3339_sec, client_crl_expiry(), absl::UTCTimeZone()),
                                   "; get a new one from its authority"));
  }
  return absl::OkStatus();
}

void TlsMaterial::MakeClientStore() {
  client_store_.reset(X509_STORE_new());
  for (const Certificate& authority : client_authorities_) X509_STORE_add_cert(client_store_.get(), authority.get());
  for (const RevocationList& list : revocation_lists_) X509_STORE_add_crl(client_store_.get(), list.get());
  // As in gRPC, which verifies before this check: a trusted authority need not be self-signed.
  X509_STORE_set_flags(client_store_.get(), X509_V_FLAG_PARTIAL_CHAIN);
  if (has_revocation_lists()) {
    X509_STORE_set_flags(client_store_.get(), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    X509_STORE_set_verify_cb(client_store_.get(), CheckLists);
  }
  X509_STORE_set_purpose(client_store_.get(), X509_PURPOSE_SSL_CLIENT);
  ERR_clear_error();
}

bool TlsMaterial::Use(SSL& connection) const {
  if (SSL_use_cert_and_key(&connection, identity_.chain.front().get(), identity_.key.get(), above_.get(), 1) != 1) {
    return false;
  }
  if (!asks_clients()) return true;
  for (const Certificate& authority : client_authorities_) {
    if (SSL_add_client_CA(&connection, authority.get()) != 1) return false;
  }
  return SSL_set1_verify_cert_store(&connection, client_store_.get()) == 1;
}

absl::Status TlsMaterial::CheckClient(std::string_view certificate_pem, std::string_view chain_pem) const {
  const std::vector<Certificate> certificates = ParseCertificates(certificate_pem);
  const std::vector<Certificate> chain = ParseCertificates(chain_pem);
  if (certificates.empty()) return absl::UnauthenticatedError("the client's certificate cannot be read");
  const std::unique_ptr<STACK_OF(X509), Free> untrusted(sk_X509_new_null());
  for (const Certificate& certificate : chain) sk_X509_push(untrusted.get(), certificate.get());
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> check(X509_STORE_CTX_new(), X509_STORE_CTX_free);
  if (check == nullptr ||
      X509_STORE_CTX_init(check.get(), client_store_.get(), certificates.front().get(), untrusted.get()) != 1) {
    return absl::UnauthenticatedError("out of memory while checking the client's certificate");
  }
  const bool holds = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  if (holds) return absl::OkStatus();
  int error = X509_STORE_CTX_get_error(check.get());
  // A client that resumes a TLS session presents only its certificate. Its chain was checked against the same lists
  // when the session began: a session does not survive a change of the lists.
  const bool resumes = chain.empty() && error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
  if (resumes) error = CheckAlone(*certificates.front());
  return error == X509_V_OK ? absl::OkStatus() : absl::UnauthenticatedError(X509_verify_cert_error_string(error));
}

int TlsMaterial::CheckAlone(X509& certificate) const {
  const absl::Time now = absl::Now();
  if (now > longshort::ExpiryOf(certificate)) return X509_V_ERR_CERT_HAS_EXPIRED;
  int error = has_revocation_lists() ? X509_V_ERR_UNABLE_TO_GET_CRL : X509_V_OK;
  for (const RevocationList& list : revocation_lists_) {
    if (X509_NAME_cmp(X509_CRL_get_issuer(list.get()), X509_get_issuer_name(&certificate)) != 0) continue;
    if (Revokes(list.get(), certificate)) return X509_V_ERR_CERT_REVOKED;
    if (error != X509_V_OK) error = now > ExpiryOf(*list) ? X509_V_ERR_CRL_HAS_EXPIRED : X509_V_OK;
  }
  return error;
}

absl::Time TlsMaterial::certificate_expiry() const {
  absl::Time first = absl::InfiniteFuture();
  for (const Certificate& certificate : identity_.chain) first = std::min(first, longshort::ExpiryOf(*certificate));
  return first;
}

absl::Time TlsMaterial::client_ca_expiry() const {
  if (client_authorities_.empty()) return absl::InfiniteFuture();
  absl::Time last = absl::InfinitePast();
  for (const Certificate& authority : client_authorities_) last = std::max(last, longshort::ExpiryOf(*authority));
  return last;
}

absl::Time TlsMaterial::client_crl_expiry() const {
  absl::Time first = absl::InfiniteFuture();
  for (const RevocationList& list : revocation_lists_) first = std::min(first, ExpiryOf(*list));
  return first;
}

namespace {

void AppendState(const std::string& path, std::string& state) {
  struct stat file {};
  if (path.empty() || stat(path.c_str(), &file) != 0) return absl::StrAppend(&state, "none;");
  absl::StrAppend(&state, file.st_dev, ":", file.st_ino, ":", file.st_size, ":", file.st_mtim.tv_sec, ".",
                  file.st_mtim.tv_nsec, ":", file.st_ctim.tv_sec, ".", file.st_ctim.tv_nsec, ";");
}

// A text that changes when a file is written, replaced, or its link points to another one.
std::string StateOf(const TlsFiles& files) {
  std::string state;
  for (const std::string* path : {&files.certificate, &files.key, &files.client_ca, &files.client_crl}) {
    AppendState(*path, state);
  }
  return state;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsWatch>> TlsWatch::Start(const TlsFiles& files, Handlers handlers) {
  std::string state = StateOf(files);  // before reading, so that a write during it is noticed
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> material, TlsMaterial::Load(files, absl::Now()));
  std::unique_ptr<TlsWatch> watch(new TlsWatch(std::move(handlers)));
  LS_RETURN_IF_ERROR(watch->Publish(std::move(material)));
  const auto use = [&watch = *watch, files](const std::string&) -> absl::Status {
    LS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsMaterial> changed, TlsMaterial::Load(files, absl::Now()));
    return watch.Publish(std::move(changed));
  };
  const auto report = [&watch = *watch](const absl::Status& status) {
    if (!status.ok()) return watch.handlers_.broken(status);
    watch.handlers_.replaced(*watch.current());
  };
  watch->watch_ = std::make_unique<FileWatch>(
      FileWatch::Options{.read = [files] { return StateOf(files); }, .use = use, .report = report}, std::move(state));
  LS_RETURN_IF_ERROR(watch->watch_->Start("the thread that watches certificates"));
  return watch;
}

std::shared_ptr<const TlsMaterial> TlsWatch::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

absl::Status TlsWatch::Publish(std::shared_ptr<const TlsMaterial> material) {
  LS_RETURN_IF_ERROR(handlers_.publish(*material));
  const MutexLock lock(mutex_);
  current_ = std::move(material);
  return absl::OkStatus();
}

}  // namespace longshort::server
