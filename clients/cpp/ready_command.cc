// `longshort ready`: checks whether the server answers /readyz with 200. Readiness probes use it: it starts in
// milliseconds and needs neither curl nor a token.
#include <openssl/err.h>
#include <openssl/http.h>
#include <openssl/httperr.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/command.h"

namespace longshort::client {
namespace {

constexpr char kDefaultAddress[] = "127.0.0.1:8501";

template <typename T, void (*free)(T*)>
struct Freed {
  void operator()(T* it) const { free(it); }
};
using TlsContext = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>>;
using Stream = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;

// The result of one request.
struct Probe {
  bool ready = false;
  // Whether the server sent an HTTP response.
  bool answered = false;
  std::string error = {};
};

// Converts to OpenSSL's whole seconds; 0 means no limit.
int SecondsFor(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return 0;
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Seconds(absl::Ceil(timeout, absl::Seconds(1))), 86400));
}

// OpenSSL callback that adds TLS to an https connection; `context` is its SSL_CTX.
BIO* BeginTls(BIO* connection, void* context, int connects, int encrypted) {
  if (connects == 0 || encrypted == 0) return connection;
  BIO* const tls = BIO_new_ssl(static_cast<SSL_CTX*>(context), /*client=*/1);
  return tls == nullptr ? nullptr : BIO_push(tls, connection);
}

// Returns OpenSSL's oldest error, which caused the others.
Probe TakeError() {
  Probe probe;
  const char* more = nullptr;
  int flags = 0;
  const unsigned long error = ERR_get_error_all(nullptr, nullptr, nullptr, &more, &flags);
  const char* const reason = ERR_reason_error_string(error);
  probe.answered = ERR_GET_LIB(error) == ERR_LIB_HTTP && (ERR_GET_REASON(error) == HTTP_R_RECEIVED_ERROR ||
                                                          ERR_GET_REASON(error) == HTTP_R_STATUS_CODE_UNSUPPORTED);
  probe.error = reason == nullptr ? "no answer" : reason;
  if ((flags & ERR_TXT_STRING) != 0 && *more != '\0') absl::StrAppend(&probe.error, " (", more, ")");
  ERR_clear_error();
  return probe;
}

Probe Ask(const char* scheme, const std::string& address, SSL_CTX* tls, absl::Duration timeout) {
  ERR_clear_error();
  const std::string url = absl::StrCat(scheme, "://", address, "/readyz");
  // There is no proxy, because it cannot reach this machine's loopback address.
  const Stream answer(OSSL_HTTP_get(url.c_str(), /*proxy=*/"", /*no_proxy=*/nullptr, nullptr, nullptr, BeginTls, tls,
                                    /*buf_size=*/0, nullptr, nullptr, /*expect_asn1=*/0, /*max_resp_len=*/0,
                                    SecondsFor(timeout)));
  if (answer != nullptr) return {.ready = true, .answered = true};
  return TakeError();
}

// Tries HTTP, then HTTPS.
Probe AskEither(const std::string& address, absl::Duration timeout) {
  // Accepts any certificate, as Kubernetes' probes do: the request has no secret.
  const TlsContext tls(SSL_CTX_new(TLS_client_method()));
  const absl::Time end = absl::Now() + timeout;
  Probe plain = Ask("http", address, tls.get(), timeout);
  const absl::Duration left = end - absl::Now();
  if (plain.ready || left <= absl::ZeroDuration()) return plain;  // a port with TLS may answer 400
  const Probe encrypted = Ask("https", address, tls.get(), left);
  return encrypted.answered ? encrypted : plain;
}

class ReadyCommand final : public Command {
 public:
  ReadyCommand()
      : Command("ready", "Check whether the server is ready, for probes",
                R"(Usage: longshort ready [HOST:PORT] [options]

Requests /readyz from the server's HTTP port, by default 127.0.0.1:8501. If the server is ready, prints "ready" and exits with
0. Otherwise prints the reason and exits with 3. Uses HTTP or HTTPS, as the port requires, and accepts any certificate. Give
--timeout: a busy or suspended server may never answer.

Examples:
  longshort ready --timeout=4s
  until longshort ready --timeout=1s; do sleep 1; done
)") {}

  absl::StatusOr<ExitCode> Run(const std::vector<std::string>& arguments, const CommandContext& context) override {
    if (arguments.size() > 1) return UsageError("ready takes at most one argument: HOST:PORT");
    const std::string address = arguments.empty() ? kDefaultAddress : arguments.front();
    if (address.find(':') == std::string::npos || address.find_first_of("/@?#") != std::string::npos) {
      return UsageError(absl::StrCat("the server's HTTP port is \"", address, "\"; it must be HOST:PORT"));
    }
    const Probe probe = AskEither(address, context.options.timeout);
    if (probe.ready) {
      context.terminal.output << "ready\n";
      return ExitCode::kOk;
    }
    context.terminal.error << "longshort: "
                           << (probe.answered ? "the server is not ready at " : "cannot reach the server at ")
                           << address << ": " << probe.error << "\n";
    return ExitCode::kUnavailable;
  }
};

}  // namespace

std::unique_ptr<Command> MakeReadyCommand() { return std::make_unique<ReadyCommand>(); }

}  // namespace longshort::client
