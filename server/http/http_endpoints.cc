#include "server/http/http_endpoints.h"

#include <utility>

#include "base/status_macros.h"

namespace longshort {
namespace {

constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Start(const ListenAddress& address,
                                                                    std::function<std::string()> metrics) {
  std::unique_ptr<HttpEndpoints> endpoints(new HttpEndpoints);
  std::map<std::string, HttpServer::Handler> handlers;
  handlers["/metrics"] = [metrics = std::move(metrics)](const HttpRequest&) -> HttpResponse {
    return {.body = metrics(), .content_type = kPrometheusText};
  };
  handlers["/livez"] = [](const HttpRequest&) -> HttpResponse { return {.body = "ok\n"}; };
  handlers["/readyz"] = [&ready = endpoints->ready_](const HttpRequest&) -> HttpResponse {
    return ready ? HttpResponse{.body = "ready\n"} : HttpResponse{.status = 503, .body = "not ready\n"};
  };
  LS_ASSIGN_OR_RETURN(endpoints->server_,
                      HttpServer::Start({.option = "http-listen", .address = address}, std::move(handlers)));
  return endpoints;
}

}  // namespace longshort
