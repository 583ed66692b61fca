#include "server/lifecycle/tls_credentials.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/pem_files.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

namespace tls_api = grpc::experimental;

// The shortest interval that gRPC allows. It reads in-memory files.
constexpr unsigned int kReadAgainSeconds = 1;

std::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

// Checks a client's certificate after OpenSSL has verified it, or when a TLS session is resumed. gRPC has its own
// support for revocation lists, but rereads them only when the certificate changes.
class ClientCheck final : public tls_api::ExternalCertificateVerifier {
 public:
  ClientCheck(const TlsWatch& tls, Logger& log) : tls_(tls), log_(log) {}

  bool Verify(tls_api::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)> /*later*/,
              grpc::Status* now) override {
    const absl::Status status =
        tls_.current()->CheckClient(View(request->peer_cert()), View(request->peer_cert_full_chain()));
    if (!status.ok()) {
      log_.LogLimited(
          absl::StrCat("client refused: ", status.message()), MonotonicNow(), LogLevel::kInfo, "client refused",
          {{"why", std::string(status.message())}, {"common_name", std::string(View(request->common_name()))}});
      *now = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(status.message()));
    }
    return true;  // decided synchronously
  }
  void Cancel(tls_api::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const TlsWatch& tls_;
  Logger& log_;
};

absl::Status Publish(const TlsMaterial& material, ServerTls& tls) {
  // The text differs each time, so gRPC makes a new context and resumes no TLS session that began with other lists;
  // otherwise a revoked client could resume one.
  const std::string authorities = absl::StrCat("# ", ++tls.published, "\n", material.ClientAuthoritiesPem());
  LS_RETURN_IF_ERROR(tls.client_authorities.Write(authorities));
  return tls.identity.Write(material.IdentityPem());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerTls>> WatchTlsFiles(const TlsFiles& files, ServerMetrics& metrics, Logger& log) {
  if (!files.enabled()) return nullptr;
  const auto report = [&metrics, &log](const std::string& message, const TlsMaterial& material) {
    metrics.SetTlsExpiry("certificate", material.certificate_expiry());
    metrics.SetTlsExpiry("client_ca", material.client_ca_expiry());
    metrics.SetTlsExpiry("client_crl", material.client_crl_expiry());
    log.Info(message,
             {{"subject", SubjectOf(material.certificate())},
              {"serial", SerialOf(material.certificate())},
              {"expires", absl::FormatTime(absl::RFC3339_sec, material.certificate_expiry(), absl::UTCTimeZone())}});
  };
  LS_ASSIGN_OR_RETURN(MemoryFile identity, MemoryFile::Create());
  LS_ASSIGN_OR_RETURN(MemoryFile client_authorities, MemoryFile::Create());
  std::unique_ptr<ServerTls> tls(
      new ServerTls{.identity = std::move(identity), .client_authorities = std::move(client_authorities)});
  LS_ASSIGN_OR_RETURN(
      tls->watch,
      TlsWatch::Start(files,
                      {.publish = [&tls = *tls](const TlsMaterial& material) { return Publish(material, tls); },
                       .replaced = [report](const TlsMaterial& material) { report("TLS files replaced", material); },
                       .broken =
                           [&log](const absl::Status& why) {
                             log.Error("the new TLS files are invalid; the previous ones stay in use",
                                       {{"error", std::string(why.message())}});
                           }}));
  report("TLS certificate in use", *tls->watch->current());
  return tls;
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerTls* tls, Logger& log) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  const bool asks_clients = tls->watch->current()->asks_clients();
  const std::string identity = tls->identity.path();
  tls_api::TlsServerCredentialsOptions options(std::make_shared<tls_api::FileWatcherCertificateProvider>(
      identity, identity, asks_clients ? tls->client_authorities.path() : "", kReadAgainSeconds));
  options.watch_identity_key_cert_pairs();
  if (asks_clients) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.set_certificate_verifier(tls_api::ExternalCertificateVerifier::Create<ClientCheck>(*tls->watch, log));
  }
  return tls_api::TlsServerCredentials(options);
}

}  // namespace longshort::server
