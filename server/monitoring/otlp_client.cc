#include "server/monitoring/otlp_client.h"

// clang-format off: boost/asio/awaitable.hpp needs <utility> and does not include it
#include <utility>
// clang-format on

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/inflate.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "longshort_version.h"
#include "server/call/error_details.pb.h"
#include "server/options/listening_sockets.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;

// A collector's answer is short.
constexpr uint64_t kMaxAnswerBytes = uint64_t{1} << 20;
constexpr size_t kReadBytes = size_t{4} << 10;
constexpr char kProtobuf[] = "application/x-protobuf";
constexpr int kLevel = 6;  // of gzip: zlib's default
constexpr int kGrpcPort = 4317;
constexpr char kGrpcHint[] =
    "; port 4317 is usually for OTLP over gRPC: the server needs the one for HTTP, usually 4318";

using Answer = http::response<http::string_body>;

// Why the collector refused: the message of a google.rpc.Status, or nothing.
std::string MessageIn(const Answer& answer) {
  rpc::ErrorStatus status;
  if (answer[http::field::content_type] != kProtobuf || !status.ParseFromString(answer.body())) return "";
  return status.message();
}

absl::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

// The bytes of an HTTP request.
absl::StatusOr<std::string> MakeRequest(const TracingOptions& options, const std::string& body) {
  http::fields fields;
  for (const auto& [key, value] : options.headers) fields.set(key, value);
  fields.set(http::field::host, options.endpoint);
  fields.set(http::field::user_agent, absl::StrCat("longshort-server/", std::string(kVersion)));
  fields.set(http::field::content_type, kProtobuf);
  std::optional<std::string> packed;
  if (options.gzip) {
    packed = Gzip(body, kLevel);
    if (!packed.has_value()) return absl::ResourceExhaustedError("zlib has no memory for the spans");
    fields.set(http::field::content_encoding, "gzip");
  }
  const std::string& sent = packed.has_value() ? *packed : body;
  fields.set(http::field::content_length, absl::StrCat(sent.size()));
  std::string request = absl::StrCat("POST ", options.path, " HTTP/1.1\r\n");
  for (const auto& field : fields) {
    absl::StrAppend(&request, View(field.name_string()), ": ", View(field.value()), "\r\n");
  }
  absl::StrAppend(&request, "\r\n", sent);
  return request;
}

}  // namespace

// The connection to the collector, kept between exports.
class OtlpClient::Link final {
 public:
  Link(const TracingOptions& options, const ListenAddress& address)
      : address_(address), path_(options.path), uses_tls_(options.tls), tls_(asio::ssl::context::tls_client) {}

  absl::Status UseTls(const CollectorPems& pems) {
    try {
      tls_.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
      tls_.set_verify_mode(asio::ssl::verify_peer);
      tls_.set_verify_callback(asio::ssl::host_name_verification(address_.host));
      if (pems.authorities.empty()) {
        tls_.set_default_verify_paths();
      } else {
        tls_.add_certificate_authority(asio::buffer(pems.authorities));
      }
      if (pems.certificate.empty()) return absl::OkStatus();
      tls_.use_certificate_chain(asio::buffer(pems.certificate));
      tls_.use_private_key(asio::buffer(pems.key), asio::ssl::context::pem);
      return absl::OkStatus();
    } catch (const boost::system::system_error& error) {
      return absl::InvalidArgumentError(error.what());
    }
  }

  // One attempt. nullopt if the connection failed, for the reason in `broken`.
  std::optional<OtlpAnswer> TryOnce(const std::string& request, absl::Time end) {
    {
      const MutexLock lock(mutex_);
      if (is_cancelled_) return OtlpAnswer{.status = absl::CancelledError("the server stops")};
      if (context_ == nullptr) context_ = std::make_unique<asio::io_context>(1);
      context_->restart();
    }
    bool is_done = false;
    std::optional<OtlpAnswer> result;
    asio::co_spawn(*context_, Exchange(request), [&](const std::exception_ptr& error, OtlpAnswer answer) {
      is_done = true;
      if (error == nullptr) result = std::move(answer);
      if (error != nullptr) broken_ = absl::StrCat(WhatOf(error), address_.port == kGrpcPort ? kGrpcHint : "");
    });
    context_->run_for(absl::ToChronoNanoseconds(end - MonotonicNow()));
    if (!result.has_value()) connection_ = nullptr;
    const MutexLock lock(mutex_);
    if (!is_done) {
      DestroyLater(std::move(context_));  // and with it the coroutine
      result = {.status = absl::DeadlineExceededError("the collector did not answer in time"),
                .retry = absl::ZeroDuration()};
    }
    if (is_cancelled_) result = {.status = absl::CancelledError("the server stops")};
    return result;
  }

  void Cancel() {
    const MutexLock lock(mutex_);
    is_cancelled_ = true;
    if (context_ != nullptr) context_->stop();
  }

  bool is_connected() const { return connection_ != nullptr; }
  const std::string& broken() const { return broken_; }

 private:
  struct Connection {
    Connection(asio::io_context& context, asio::ssl::context& tls) : stream(context, tls) {}
    asio::ssl::stream<tcp::socket> stream;  // without TLS only its socket is used
    std::string received = {};              // and not yet parsed
  };

  // The destructor waits for a name that is being resolved, which may take minutes and cannot be cancelled. So it runs
  // on a thread that nothing waits for. The coroutine is not resumed, so nothing else of this client is used.
  static void DestroyLater(std::unique_ptr<asio::io_context> context) {
    asio::io_context* const leaving = context.release();
    try {
      std::thread([leaving] { delete leaving; }).detach();
    } catch (const std::system_error&) {
      delete leaving;  // no thread is left
    }
  }

  static std::string WhatOf(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      return thrown.what();
    }
  }

  awaitable<void> Connect() {
    connection_ = std::make_unique<Connection>(*context_, tls_);
    tcp::resolver resolver(*context_);
    const auto found = co_await resolver.async_resolve(address_.host, std::to_string(address_.port), use_awaitable);
    co_await asio::async_connect(connection_->stream.next_layer(), found, use_awaitable);
    if (!uses_tls_) co_return;
    SSL_set_tlsext_host_name(connection_->stream.native_handle(), address_.host.c_str());
    co_await connection_->stream.async_handshake(asio::ssl::stream_base::client, use_awaitable);
  }

  awaitable<void> Write(const std::string& bytes) {
    if (uses_tls_) {
      co_await asio::async_write(connection_->stream, asio::buffer(bytes), use_awaitable);
    } else {
      co_await asio::async_write(connection_->stream.next_layer(), asio::buffer(bytes), use_awaitable);
    }
  }

  // Waits for bytes, and appends what is there to what was received.
  awaitable<void> Read(boost::system::error_code& error) {
    std::array<char, kReadBytes> bytes;
    const auto buffer = asio::buffer(bytes);
    auto into_error = asio::redirect_error(use_awaitable, error);
    size_t count = 0;
    if (uses_tls_) {
      count = co_await connection_->stream.async_read_some(buffer, into_error);
    } else {
      count = co_await connection_->stream.next_layer().async_read_some(buffer, into_error);
    }
    connection_->received.append(bytes.data(), count);
  }

  // Beast's own reads and writes cost seconds of compilation for each kind of stream; its parser alone does not.
  awaitable<Answer> Ask(const std::string& request) {
    co_await Write(request);
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxAnswerBytes);
    parser.eager(true);
    while (!parser.is_done()) {
      boost::system::error_code error;
      co_await Read(error);
      if (error == asio::error::eof && parser.got_some()) {
        error = {};
        parser.put_eof(error);
      } else if (!error) {
        connection_->received.erase(0, parser.put(asio::buffer(connection_->received), error));
        if (error == http::error::need_more) error = {};
      }
      if (error) throw boost::system::system_error(error);
    }
    co_return parser.release();
  }

  // Throws boost::system::system_error if the connection fails. `request` outlives the coroutine.
  awaitable<OtlpAnswer> Exchange(const std::string& request) {
    if (connection_ == nullptr) co_await Connect();
    const Answer answer = co_await Ask(request);
    if (!answer.keep_alive()) connection_ = nullptr;
    const int status = answer.result_int();
    if (status >= 200 && status < 300) co_return OtlpAnswer{.body = answer.body()};
    std::string why = absl::StrCat("HTTP status ", status, " from ", path_);
    if (const std::string message = MessageIn(answer); !message.empty()) absl::StrAppend(&why, ": ", message);
    if (const auto location = answer[http::field::location]; !location.empty()) {
      absl::StrAppend(&why, ", which names ", std::string(location));
    }
    const auto retry = RetryAfter(status, std::string(answer[http::field::retry_after]));
    co_return OtlpAnswer{.status = retry.has_value() ? absl::UnavailableError(why) : absl::FailedPreconditionError(why),
                         .retry = retry};
  }

  const ListenAddress address_;
  const std::string path_;
  const bool uses_tls_;
  asio::ssl::context tls_;
  Mutex mutex_;
  // Set and destroyed by Send, with the mutex; used by it without.
  std::unique_ptr<asio::io_context> context_;
  std::unique_ptr<Connection> connection_;  // of the context
  std::string broken_;                      // why the connection failed last
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<std::shared_ptr<OtlpClient>> OtlpClient::Make(const TracingOptions& options, const CollectorPems& pems) {
  const absl::StatusOr<ListenAddress> address = ParseListenAddress(options.endpoint);
  if (!address.ok()) return address.status();
  auto link = std::make_unique<Link>(options, *address);
  if (options.tls) {
    LS_RETURN_IF_ERROR(link->UseTls(pems));
  }
  return std::shared_ptr<OtlpClient>(new OtlpClient(options, std::move(link)));
}

OtlpClient::OtlpClient(const TracingOptions& options, std::unique_ptr<Link> link)
    : options_(options), link_(std::move(link)) {}

OtlpClient::~OtlpClient() = default;

OtlpAnswer OtlpClient::Send(const std::string& body, absl::Time end) {
  const absl::StatusOr<std::string> request = MakeRequest(options_, body);
  if (!request.ok()) return {.status = request.status()};
  // An idle connection may have been closed by the collector: one that was used before is not the last attempt.
  const bool was_connected = link_->is_connected();
  std::optional<OtlpAnswer> answer = link_->TryOnce(*request, end);
  if (!answer.has_value() && was_connected) answer = link_->TryOnce(*request, end);
  return answer.value_or(OtlpAnswer{.status = absl::UnavailableError(link_->broken()), .retry = absl::ZeroDuration()});
}

void OtlpClient::Cancel() { link_->Cancel(); }

std::optional<absl::Duration> RetryAfter(int http_status, const std::string& retry_after) {
  constexpr int kTooManyRequests = 429, kBadGateway = 502, kUnavailable = 503, kGatewayTimeout = 504;
  if (http_status != kTooManyRequests && http_status != kBadGateway && http_status != kUnavailable &&
      http_status != kGatewayTimeout) {
    return std::nullopt;
  }
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(retry_after, &seconds) || seconds < 0) return absl::ZeroDuration();
  return absl::Seconds(seconds);
}

}  // namespace longshort::server
