#include "server/http/http_endpoints.h"

#include <openssl/ssl.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

// OpenSSL calls this in a new connection's handshake. 0 ends the connection.
int ShowCertificate(SSL* connection, void* watch) {
  return static_cast<const TlsWatch*>(watch)->current()->Use(*connection) ? 1 : 0;
}

// A context that presents the certificate that `tls` has at that moment. Null if OpenSSL is out of memory.
std::shared_ptr<SSL_CTX> MakeTlsContext(const TlsWatch& tls) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_cert_cb(context.get(), ShowCertificate, const_cast<TlsWatch*>(&tls));
  return context;
}

HttpResponse Refuse(const absl::Status& status) {
  const bool unknown = absl::IsUnauthenticated(status);
  HttpResponse response{.status = unknown ? 401 : 403, .body = absl::StrCat(std::string(status.message()), "\n")};
  if (unknown) response.fields.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Start(const ListenAddress& address,
                                                                    std::function<std::string()> metrics,
                                                                    MayReadMetrics may_read_metrics,
                                                                    const TlsWatch* tls, const std::string& grpc) {
  std::unique_ptr<HttpEndpoints> endpoints(new HttpEndpoints);
  const std::shared_ptr<SSL_CTX> context = tls == nullptr ? nullptr : MakeTlsContext(*tls);
  if (tls != nullptr && context == nullptr) {
    return absl::UnavailableError("HTTP cannot use TLS: OpenSSL is out of memory");
  }
  std::map<std::string, HttpServer::Handler> handlers;
  handlers["/metrics"] = [metrics = std::move(metrics),
                          may_read = std::move(may_read_metrics)](const HttpRequest& request) -> HttpResponse {
    if (may_read != nullptr) {
      if (const absl::Status status = may_read(request.authorization); !status.ok()) return Refuse(status);
    }
    return {.body = metrics(), .content_type = kPrometheusText};
  };
  handlers["/livez"] = [](const HttpRequest&) -> HttpResponse { return {.body = "ok\n"}; };
  handlers["/readyz"] = [&ready = endpoints->ready_](const HttpRequest&) -> HttpResponse {
    return ready ? HttpResponse{.body = "ready\n"} : HttpResponse{.status = 503, .body = "not ready\n"};
  };
  const std::string what = absl::StrCat(
      "longshort-server. This is the HTTP port. It has:\n  /metrics  for Prometheus\n  /livez    whether the process "
      "lives\n  /readyz   whether it serves\nModels are served over gRPC, not over HTTP",
      grpc.empty() ? "" : absl::StrCat(", by ", grpc, " (--listen)"),
      ": use a client of gRPC, such as\n  longshort models\n");
  handlers["/"] = [what](const HttpRequest&) -> HttpResponse { return {.body = what}; };
  LS_ASSIGN_OR_RETURN(endpoints->server_,
                      HttpServer::Start({.option = "http-listen", .address = address}, std::move(handlers),
                                        context.get(), {}, absl::StrCat("Not Found\n\n", what)));
  return endpoints;
}

}  // namespace longshort::server
