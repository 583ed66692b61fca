#include "server/lifecycle/tls_credentials.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "base/pem_files.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

namespace tls_api = grpc::experimental;

// The least that gRPC takes. It reads files of memory.
constexpr unsigned int kReadAgainSeconds = 1;

std::string_view View(const grpc::string_ref& text) { return {text.data(), text.size()}; }

// Asked once OpenSSL has found a client's certificate to be valid, or takes up a session for which it did. gRPC has
// revocation lists of its own, but reads those again only when another certificate comes.
class ClientCheck final : public tls_api::ExternalCertificateVerifier {
 public:
  ClientCheck(const TlsWatch& tls, Logger& log) : tls_(tls), log_(log) {}

  bool Verify(tls_api::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)> /*later*/,
              grpc::Status* now) override {
    const absl::Status status =
        tls_.current()->CheckClient(View(request->peer_cert()), View(request->peer_cert_full_chain()));
    if (!status.ok()) {
      log_.Info("client refused",
                {{"why", std::string(status.message())}, {"common_name", std::string(View(request->common_name()))}});
      *now = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(status.message()));
    }
    return true;  // it is decided
  }
  void Cancel(tls_api::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const TlsWatch& tls_;
  Logger& log_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TlsWatch>> WatchTlsFiles(const TlsFiles& files, ServerMetrics& metrics, Logger& log) {
  if (!files.enabled()) return nullptr;
  const auto tell = [&metrics, &log](const std::string& message, const TlsMaterial& material) {
    metrics.SetTlsExpiry("certificate", material.certificate_expiry());
    metrics.SetTlsExpiry("client_ca", material.client_ca_expiry());
    metrics.SetTlsExpiry("client_crl", material.client_crl_expiry());
    log.Info(message,
             {{"subject", SubjectOf(material.certificate())},
              {"serial", SerialOf(material.certificate())},
              {"expires", absl::FormatTime(absl::RFC3339_sec, material.certificate_expiry(), absl::UTCTimeZone())}});
  };
  LS_ASSIGN_OR_RETURN(
      std::unique_ptr<TlsWatch> watch,
      TlsWatch::Start(files, {.replaced = [tell](const TlsMaterial& material) { tell("TLS files replaced", material); },
                              .broken =
                                  [&log](const absl::Status& why) {
                                    log.Error("TLS files are wrong; those read before stay in use",
                                              {{"error", std::string(why.message())}});
                                  }}));
  tell("TLS certificate", *watch->current());
  return watch;
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsWatch* tls, Logger& log) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  const std::shared_ptr<const TlsMaterial> material = tls->current();
  const bool asks_clients = !material->ClientAuthoritiesPem().empty();
  // Key and certificate in one file, so that those of one pair are read.
  tls_api::TlsServerCredentialsOptions options(std::make_shared<tls_api::FileWatcherCertificateProvider>(
      tls->identity_path(), tls->identity_path(), asks_clients ? tls->client_authorities_path() : "",
      kReadAgainSeconds));
  options.watch_identity_key_cert_pairs();
  if (asks_clients) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.set_certificate_verifier(tls_api::ExternalCertificateVerifier::Create<ClientCheck>(*tls, log));
  }
  return tls_api::TlsServerCredentials(options);
}

}  // namespace longshort
