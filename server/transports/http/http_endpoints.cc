#include "server/transports/http/http_endpoints.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "longshort_version.h"
#include "server/transports/http/http_message.h"
#include "server/transports/http/page.h"

namespace longshort::server {
namespace {

constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

constexpr char kCalls[] =
    "  /longshort.v1.*      every call as JSON, for example\n"
    "                       curl -d '{}' -H 'content-type: application/json' "
    "http://HOST:PORT/longshort.v1.Models/ListModels\n"
    "  /v2                  the Open Inference Protocol, for tritonclient.http, KServe and others\n"
    "  /v1/completions, /v1/embeddings, /v1/models\n"
    "                       as OpenAI's API has them\n"
    "  /predict, /embed     texts for classifiers, as Text Embeddings Inference has them\n"
    "  /classify            an image for a classifier\n"
    "  /tokenize, /detokenize, /tokenizer_info\n"
    "                       the tokenizer of a language model\n"
    "  /docs, /openapi.json the calls, for people and in OpenAPI\n";

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
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);  // clients keep their sessions, as tickets
  if (tls.current()->asks_clients()) {
    // A client could resume a session that began before its certificate was revoked.
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

HttpResponse ForeignPage() {
  return {.status = 403, .body = "a page of another origin may call the server only if --http-cors-origin names it\n"};
}

HttpResponse WithoutCertificate() {
  return {.status = 403,
          .body = R"({"status":403,"title":"Forbidden","detail":"calls need a client certificate, because )"
                  R"(the server has --tls-client-ca; metrics and probes need none"})",
          .content_type = "application/problem+json"};
}

// "host" of "host", "host:port" and, for addresses of IPv6, "[host]:port". Empty for all else.
std::string HostOf(std::string_view authority) {
  const size_t end = authority.starts_with('[') ? authority.find(']') + 1 : authority.find(':');
  std::string host(authority.substr(0, end));
  const std::string_view rest = authority.substr(std::min(end, authority.size()));
  const bool has_port = rest.starts_with(':') && absl::c_all_of(rest.substr(1), [](char c) {
                          return absl::ascii_isdigit(static_cast<unsigned char>(c));
                        });
  if (!rest.empty() && !has_port) return "";
  if (!host.starts_with('[')) return host;
  const std::string address = host.substr(1, host.size() - 2);
  in6_addr parsed{};
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1 ? address : "";
}

// Whether a page of another origin has its browser send this.
bool IsCrossSite(const HttpRequest& head) {
  const std::optional<std::string> site = head.Find("sec-fetch-site");
  if (site.has_value()) return *site != "same-origin" && *site != "none";
  const std::optional<std::string> origin = head.Find("origin");
  if (!origin.has_value()) return false;
  const size_t scheme = origin->find("://");
  return scheme == std::string::npos ||
         !absl::EqualsIgnoreCase(origin->substr(scheme + 3), head.Find("host").value_or(""));
}

// Whether a browser asks, and not curl.
bool WantsHtml(const HttpRequest& request) {
  return absl::StrContains(request.Find("accept").value_or(""), "text/html");
}

HttpResponse AnswerOf(const PageFile& file) {
  return {.shared = {.bytes = file.content, .owner = nullptr},
          .content_type = std::string(file.content_type),
          .fields = {{"Content-Security-Policy", kPagePolicy},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-cache"}}};
}

bool IsListOfNames(std::string_view text) {
  return !text.empty() && absl::c_all_of(text, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == ',' || c == ' ';
  });
}

// Lets pages of `origin` read the answers (CORS), and answers a browser's question beforehand.
void AddCors(const std::string& origin, const HttpRequest& head, HttpPlan& plan) {
  plan.fields = {{"Access-Control-Allow-Origin", origin},
                 {"Access-Control-Expose-Headers", "x-request-id, retry-after, longshort-queue-depth"},
                 {"Vary", "Origin"}};
  if (head.method != "OPTIONS" || !head.Find("access-control-request-method").has_value()) return;
  plan.fields.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  // The asked ones: clients add some, such as x-stainless-os or traceparent, and no call trusts a browser's cookies.
  if (const std::string asked = head.Find("access-control-request-headers").value_or(""); IsListOfNames(asked)) {
    plan.fields.emplace_back("Access-Control-Allow-Headers", asked);
  }
  plan.fields.emplace_back("Access-Control-Max-Age", "7200");
  plan.serve = AnswerWith({.status = 204});
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
      "  /readyz, /health     whether it serves\n"
      "  /version, /info      the server's version, and whether you may read /metrics\n",
      own.inference ? kCalls : "Calls by HTTP are off (--http-inference).\n",
      own.grpc.empty() ? "" : absl::StrCat("The same by gRPC: ", own.grpc, " (--listen)\n"));
  LS_ASSIGN_OR_RETURN(endpoints->server_, HttpServer::Start(
                                              {.option = "http-listen", .address = own.address},
                                              [&one = *endpoints](HttpRequest& head) { return one.Route(head); },
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

bool HttpEndpoints::AllowsOrigin(const std::optional<std::string>& origin) const {
  return origin.has_value() && !options_.cors_origin.empty() &&
         (options_.cors_origin == "*" || options_.cors_origin == *origin);
}

bool HttpEndpoints::Serves(const std::string& host) const {
  const std::string name = absl::AsciiStrToLower(host);
  in_addr address{};
  return name == "localhost" || name == "::1" || absl::c_linear_search(options_.hosts, name) ||
         (inet_pton(AF_INET, name.c_str(), &address) == 1 && name.starts_with("127."));
}

HttpPlan HttpEndpoints::Route(HttpRequest& head) const {
  HttpPlan plan = PlanOf(head);
  const auto refuse = [&plan](const absl::Status& status) {
    HttpResponse response =
        plan.write_error != nullptr
            ? plan.write_error(status)
            : HttpResponse{.status = HttpStatusOf(status), .body = absl::StrCat(std::string(status.message()), "\n")};
    plan.serve = AnswerWith(std::move(response));
    plan.is_call = false;
  };
  const bool takes_method = absl::c_linear_search(plan.methods, head.method);
  const bool is_probe = head.path == "/livez" || head.path == "/readyz" || head.path == "/health";  // from any host
  const std::string authority = head.Find("host").value_or("localhost");
  if (const std::string host = HostOf(authority); options_.checks_host && !is_probe && !Serves(host)) {
    constexpr int kMisdirected = 421;
    refuse(HttpError(kMisdirected, absl::StrCat("the host is '", authority, "', but this address serves localhost; ",
                                                host.empty() ? "send HOST or HOST:PORT"
                                                             : absl::StrCat("start the server with --http-host=", host,
                                                                            " to serve it"))));
  } else if (!plan.methods.empty() && !takes_method) {
    std::string allow = absl::StrCat(absl::StrJoin(plan.methods, ", "),
                                     absl::c_linear_search(plan.methods, "GET") ? ", HEAD" : "", ", OPTIONS");
    if (head.method == "OPTIONS") {
      plan.serve = AnswerWith({.status = 204});
      plan.is_call = false;
    } else {
      constexpr int kMethodNotAllowed = 405;
      refuse(HttpError(kMethodNotAllowed, absl::StrCat(head.path, " takes ", absl::StrJoin(plan.methods, " or "))));
    }
    plan.fields.emplace_back("Allow", std::move(allow));
  }
  if (AllowsOrigin(head.Find("origin"))) AddCors(options_.cors_origin, head, plan);
  if (plan.is_call && options_.client_of != nullptr) plan.client = options_.client_of(head);
  plan.keep_alive = ready_;  // clients of a server that drains find another one with their next connection
  return plan;
}

HttpPlan HttpEndpoints::PlanOf(const HttpRequest& head) const {
  const bool is_foreign = IsCrossSite(head) && !AllowsOrigin(head.Find("origin"));
  if (head.path == "/metrics") {
    if (is_foreign) return {.methods = {"GET"}, .serve = AnswerWith(ForeignPage())};
    return {.methods = {"GET"},
            .serve = [this](const std::shared_ptr<HttpExchange>& exchange) { ServeMetrics(exchange, MonotonicNow()); }};
  }
  if (std::function<HttpResponse(const HttpRequest&)> answer = OwnAnswer(head); answer != nullptr) {
    return {.methods = {"GET"}, .serve = [answer = std::move(answer)](const std::shared_ptr<HttpExchange>& exchange) {
              exchange->Answer(answer(exchange->request()));
            }};
  }
  if (head.path == "*") return {.methods = {"GET", "POST"}};  // of OPTIONS, which Route answers
  std::shared_ptr<const std::vector<HttpFront>> fronts;
  {
    const MutexLock lock(mutex_);
    fronts = fronts_;
  }
  if (fronts == nullptr) {  // a front may have the path
    return {.serve =
                AnswerWith({.status = 503, .body = "the server loads its models\n", .fields = {{"Retry-After", "1"}}})};
  }
  for (const HttpFront& front : *fronts) {
    std::optional<HttpPlan> plan = front(head);
    if (!plan.has_value()) continue;
    if (is_foreign) return {.serve = AnswerWith(ForeignPage())};
    if (asks_clients_ && !head.has_certificate) return {.serve = AnswerWith(WithoutCertificate())};
    return *std::move(plan);
  }
  return {.serve = AnswerWith({.status = 404, .body = absl::StrCat("Not Found\n\n", what_)})};
}

std::function<HttpResponse(const HttpRequest&)> HttpEndpoints::OwnAnswer(const HttpRequest& head) const {
  if (head.path == "/livez") return [](const HttpRequest&) { return HttpResponse{.body = "ok\n"}; };
  if (head.path == "/version" || head.path == "/info") {
    return [this](const HttpRequest& request) {
      return HttpResponse{
          .body = absl::StrCat(R"({"name":"longshort","version":")", std::string(kVersion), R"(","may_read_metrics":)",
                               CheckMetricsAccess(request).ok() ? "true" : "false", "}\n"),
          .content_type = kJsonType};
    };
  }
  if (head.path == "/readyz" || head.path == "/health") {
    return [this](const HttpRequest&) {
      if (!ready_) return HttpResponse{.status = 503, .body = "not ready\n"};
      const int64_t not_loaded = options_.models_not_loaded();
      if (not_loaded == 0) return HttpResponse{.body = "ready\n"};
      return HttpResponse{.body = absl::StrCat("ready; versions of models that could not be loaded: ", not_loaded,
                                               " (the log and ListModels say why)\n")};
    };
  }
  if (head.path == "/" && !WantsHtml(head)) return [this](const HttpRequest&) { return HttpResponse{.body = what_}; };
  if (options_.inference && options_.page) {
    if (const std::optional<PageFile> file = FindPageFile(head.path); file.has_value()) {
      return [file = *file](const HttpRequest&) { return AnswerOf(file); };
    }
  }
  return nullptr;
}

absl::Status HttpEndpoints::CheckMetricsAccess(const HttpRequest& head) const {
  return options_.may_read_metrics == nullptr ? absl::OkStatus()
                                              : options_.may_read_metrics(head.Find("authorization"));
}

void HttpEndpoints::ServeMetrics(const std::shared_ptr<HttpExchange>& exchange, absl::Time asked) const {
  constexpr absl::Duration kInterval = absl::Milliseconds(100);
  if (const absl::Status status = CheckMetricsAccess(exchange->request()); !status.ok()) {
    return exchange->Answer(Refuse(status));
  }
  if (metrics_time_ < asked) {
    if (const absl::Time next = metrics_time_ + kInterval; MonotonicNow() < next) {
      return exchange->SetTimer(next, [this, exchange, asked] { ServeMetrics(exchange, asked); });
    }
    metrics_ = std::make_shared<const std::string>(options_.metrics());
    metrics_time_ = MonotonicNow();
  }
  exchange->Answer({.shared = {.bytes = *metrics_, .owner = metrics_}, .content_type = kPrometheusText});
}

}  // namespace longshort::server
