#include "server/http/http_endpoints.h"

#include <openssl/ssl.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/http/page.h"

namespace longshort::server {
namespace {

constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

constexpr char kCalls[] =
    "  /longshort.v1.*      every call as JSON, for example\n"
    "                       curl -d '{}' -H 'content-type: application/json' "
    "http://HOST:PORT/longshort.v1.Models/ListModels\n"
    "  /v2                  the Open Inference Protocol, for tritonclient.http, KServe and others\n"
    "  /v1/completions      as OpenAI's API has it\n"
    "  /predict, /classify  texts and images for classifiers\n";

// OpenSSL calls this in a new connection's handshake. 0 ends the connection.
int ShowCertificate(SSL* connection, void* watch) {
  return static_cast<const TlsWatch*>(watch)->current()->Use(*connection) ? 1 : 0;
}

// A context that presents the certificate that `tls` has at that moment, and verifies those of clients by it. Null if
// OpenSSL is out of memory.
std::shared_ptr<SSL_CTX> MakeTlsContext(const TlsWatch& tls) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (tls.current()->asks_clients()) {
    // A client could resume a session that began before its certificate was revoked.
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context.get(), 0);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  SSL_CTX_set_cert_cb(context.get(), ShowCertificate, const_cast<TlsWatch*>(&tls));
  return context;
}

HttpResponse Refuse(const absl::Status& status) {
  const bool unknown = absl::IsUnauthenticated(status);
  HttpResponse response{.status = unknown ? 401 : 403, .body = absl::StrCat(std::string(status.message()), "\n")};
  if (unknown) response.fields.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

void RefuseWithoutCertificate(const std::shared_ptr<HttpExchange>& exchange) {
  exchange->Answer({.status = 403,
                    .body = R"({"status":403,"title":"Forbidden","detail":"calls need a client certificate, because )"
                            R"(the server has --tls-client-ca; metrics and probes need none"})",
                    .content_type = "application/problem+json"});
}

// Whether a browser asks, and not curl.
bool WantsHtml(const HttpRequest& request) {
  return absl::StrContains(request.Find("accept").value_or(""), "text/html");
}

HttpResponse AnswerOf(const PageFile& file) {
  return {.body = std::string(file.content),
          .content_type = std::string(file.content_type),
          .fields = {{"Content-Security-Policy", kPagePolicy},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-cache"}}};
}

// Lets pages of `origin` read the answers (CORS), and answers a browser's question beforehand.
void AddCors(const std::string& origin, const HttpRequest& head, HttpPlan& plan) {
  const std::optional<std::string> asking = head.Find("origin");
  if (origin.empty() || !asking.has_value() || (origin != "*" && *asking != origin)) return;
  plan.fields = {{"Access-Control-Allow-Origin", origin},
                 {"Access-Control-Expose-Headers", "x-request-id, retry-after, longshort-queue-depth"},
                 {"Vary", "Origin"}};
  if (head.method != "OPTIONS" || !head.Find("access-control-request-method").has_value()) return;
  plan.fields.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  plan.fields.emplace_back("Access-Control-Allow-Headers",
                           "authorization, content-type, connect-protocol-version, connect-timeout-ms, x-client-id, "
                           "x-priority, x-request-id, x-session-id, inference-header-content-length");
  plan.fields.emplace_back("Access-Control-Max-Age", "7200");
  plan.serve = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Answer({.status = 204, .content_type = ""});
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Start(Options options) {
  std::unique_ptr<HttpEndpoints> endpoints(new HttpEndpoints(std::move(options)));
  const Options& own = endpoints->options_;
  const std::shared_ptr<SSL_CTX> context = own.tls == nullptr ? nullptr : MakeTlsContext(*own.tls);
  if (own.tls != nullptr && context == nullptr) {
    return absl::UnavailableError("HTTP cannot use TLS: OpenSSL is out of memory");
  }
  endpoints->asks_clients_ = own.tls != nullptr && own.tls->current()->asks_clients();
  endpoints->what_ = absl::StrCat(
      "longshort-server. This is the HTTP port. It has:\n"
      "  /metrics             for Prometheus\n"
      "  /livez               whether the process lives\n"
      "  /readyz              whether it serves\n",
      own.inference ? kCalls : "Calls by HTTP are off (--http-inference).\n",
      own.grpc.empty() ? "" : absl::StrCat("The same by gRPC: ", own.grpc, " (--listen)\n"));
  LS_ASSIGN_OR_RETURN(endpoints->server_, HttpServer::Start(
                                              {.option = "http-listen", .address = own.address},
                                              [&one = *endpoints](const HttpRequest& head) { return one.Route(head); },
                                              context.get(), own.limits, own.socket_mode));
  return endpoints;
}

ListenAddress HttpEndpoints::address() const {
  ListenAddress address = options_.address;
  address.port = server_->port();
  return address;
}

void HttpEndpoints::Serve(std::vector<HttpFront> fronts) {
  if (!options_.inference) fronts.clear();
  const MutexLock lock(mutex_);
  fronts_ = std::make_shared<const std::vector<HttpFront>>(std::move(fronts));
}

HttpPlan HttpEndpoints::Route(const HttpRequest& head) const {
  std::shared_ptr<const std::vector<HttpFront>> fronts;
  {
    const MutexLock lock(mutex_);
    fronts = fronts_;
  }
  HttpPlan plan;
  plan.serve = [this, is_loading = fronts == nullptr](const std::shared_ptr<HttpExchange>& exchange) {
    constexpr int kNotFound = 404;
    HttpResponse response = Respond(exchange->request());
    if (is_loading && response.status == kNotFound) {  // a front may have the path
      response = {.status = 503, .body = "the server loads its models\n", .fields = {{"Retry-After", "1"}}};
    }
    exchange->Answer(std::move(response));
  };
  if (fronts != nullptr) {
    for (const HttpFront& front : *fronts) {
      if (std::optional<HttpPlan> found = front(head); found.has_value()) {
        plan = *std::move(found);
        if (asks_clients_ && !head.has_certificate) plan = {.serve = RefuseWithoutCertificate};
        break;
      }
    }
  }
  AddCors(options_.cors_origin, head, plan);
  plan.keep_alive = ready_;  // clients of a server that drains find another one with their next connection
  return plan;
}

HttpResponse HttpEndpoints::Respond(const HttpRequest& request) const {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (reads && request.path == "/metrics") {
    const absl::Status status = options_.may_read_metrics == nullptr
                                    ? absl::OkStatus()
                                    : options_.may_read_metrics(request.Find("authorization"));
    if (!status.ok()) return Refuse(status);
    return {.body = options_.metrics(), .content_type = kPrometheusText};
  }
  if (reads && request.path == "/livez") return {.body = "ok\n"};
  if (reads && request.path == "/readyz") {
    return ready_ ? HttpResponse{.body = "ready\n"} : HttpResponse{.status = 503, .body = "not ready\n"};
  }
  if (reads && request.path == "/" && !WantsHtml(request)) return {.body = what_};
  if (reads && options_.inference && options_.page) {
    if (const std::optional<PageFile> file = FindPageFile(request.path); file.has_value()) return AnswerOf(*file);
  }
  return {.status = 404, .body = absl::StrCat("Not Found\n\n", what_)};
}

}  // namespace longshort::server
