#include "server/http/http_endpoints.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

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
                                                                    const TlsWatch* tls) {
  std::unique_ptr<HttpEndpoints> endpoints(new HttpEndpoints);
  if (tls != nullptr) {
    endpoints->tls_ = MakeTlsContext(*tls);
    if (endpoints->tls_ == nullptr) {
      return absl::UnavailableError("HTTP cannot speak TLS: OpenSSL has no memory for it");
    }
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
  LS_ASSIGN_OR_RETURN(endpoints->server_, HttpServer::Start({.option = "http-listen", .address = address},
                                                            std::move(handlers), endpoints->tls_.get()));
  return endpoints;
}

}  // namespace longshort
