#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/status.hpp>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/transports/http/connection_exchange.h"
#include "server/transports/http/http_connection.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using boost::system::error_code;

constexpr std::string_view kNewLine = "\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// Interval for looking whether a client that sends nothing more is still there.
constexpr absl::Duration kLookInterval = absl::Milliseconds(500);

// The host and port of a target in absolute form, such as "http://host:1/path"; nullopt for other targets.
std::optional<std::string_view> AuthorityOf(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (absl::EqualsIgnoreCase(std::string(target.substr(0, scheme.size())), std::string(scheme))) {
      target.remove_prefix(scheme.size());
      return target.substr(0, target.find_first_of("/?"));
    }
  }
  return std::nullopt;
}

// How many fields are in the trailer of a body in chunks. `end`: from the last chunk's head on.
int64_t TrailerFields(std::string_view end) {
  if (end.starts_with(kNewLine)) end.remove_prefix(kNewLine.size());  // of the chunk before it
  return absl::c_count(end.substr(0, end.find("\r\n\r\n")), '\n');
}

// Looks for the end of a head: the bytes before it take no memory but their own.
class HeadEnd final {
 public:
  // `text`: as at the last call, with more behind it. Returns the length of the head; 0 if its end is not there.
  size_t Find(std::string_view text) {
    for (; (next_ = text.find('\n', next_)) != std::string_view::npos; ++next_, ++lines_) {
      const std::string_view rest = text.substr(next_ + 1);
      if (rest.empty() || rest == "\r") return 0;
      for (const std::string_view end : {"\n", "\r\n"}) {  // a head with the first is refused when it is parsed
        if (rest.starts_with(end)) return next_ + 1 + end.size();
      }
    }
    next_ = text.size();
    return 0;
  }
  // In memory, each field takes more than its text.
  bool HasTooManyFields() const {
    constexpr int64_t kMaxFields = 128;
    return lines_ > kMaxFields;
  }

 private:
  size_t next_ = 0;
  int64_t lines_ = 0;  // that have ended, and are not the last
};

}  // namespace

awaitable<bool> HttpConnection::ServeNext() {
  Parser parser;
  parser.header_limit(std::numeric_limits<uint32_t>::max());  // Beast's limit ignores heads that arrive at once
  parser.body_limit(std::numeric_limits<uint64_t>::max());    // ParseBody limits it
  keep_alive_ = false;
  without_body_ = false;
  fields_.clear();
  if (const int error = co_await ReadHead(parser); error != 0) {
    const HttpResponse response = {.status = error, .body = absl::StrCat(HttpReason(error), "\n")};
    co_await Send(HeadOf(response, response.body.size()), response.body);
    co_return false;
  }
  HttpRequest head = RequestOf(parser);
  parser.get().clear();  // the request has the fields
  without_body_ = head.method == "HEAD";
  if (without_body_) head.method = "GET";
  HttpPlan plan = shared_.router(head);
  fields_ = std::move(plan.fields);
  exchange_ = std::make_shared<Exchange>(*this, std::move(head));
  const std::shared_ptr<Exchange> exchange = exchange_;
  parser_ = &parser;
  is_call_ = plan.is_call;
  client_ = std::move(plan.client);
  const absl::Cleanup end = [this] {
    EndCall();
    parser_ = nullptr;
  };
  expects_ = absl::EqualsIgnoreCase(exchange->request().Find("expect").value_or(""), "100-continue");
  sends_chunks_ = parser.get().version() >= 11;
  has_answered_ = false;
  question_interval_ = absl::ZeroDuration();
  next_question_ = absl::InfinitePast();
  keep_alive_ = parser.keep_alive() && plan.keep_alive && sends_chunks_;
  EndPhase();
  exchange->request().body_status = BeginCall();
  if (plan.serve == nullptr) plan.serve = AnswerWith({.status = 404, .body = "Not Found\n"});
  plan.serve(exchange);
  const bool stays = co_await ServeExchange(exchange);
  exchange_ = nullptr;
  exchange->End();
  co_return stays;
}

absl::Status HttpConnection::BeginCall() {
  if (!is_call_) return absl::OkStatus();
  const size_t limit = shared_.limits.calls();
  if (shared_.calls >= limit) {
    return absl::UnavailableError(
        absl::StrCat("the server has ", shared_.calls, " calls by HTTP in progress, its limit; try again in a second"));
  }
  size_t& own = shared_.calls_of[client_];
  if (!client_.empty() && own >= limit - shared_.calls) {
    absl::Status status = absl::ResourceExhaustedError(
        absl::StrCat("client ", client_, " has ", own, " calls by HTTP in progress, as many as the ",
                     limit - shared_.calls, " for which there is room; try again when some have ended"));
    core::SetRefusal(status, {.retry_after = absl::Seconds(1)});
    return status;
  }
  ++own;
  ++shared_.calls;
  is_counted_ = true;
  return absl::OkStatus();
}

void HttpConnection::EndCall() {
  if (!std::exchange(is_counted_, false)) return;
  --shared_.calls;
  if (const auto own = shared_.calls_of.find(client_); --own->second == 0) shared_.calls_of.erase(own);
}

awaitable<bool> HttpConnection::ServeExchange(const std::shared_ptr<Exchange>& exchange) {
  while (true) {
    if (!exchange->parts_.empty()) {
      Part part = std::move(exchange->parts_.front());
      exchange->parts_.pop_front();
      bool sent = false;
      try {
        co_await Send(part.head, part.shared.bytes.empty() ? std::string_view(part.body) : part.shared.bytes);
        EndPhase();
        sent = true;
      } catch (const boost::system::system_error&) {
        Close();
      }
      has_answered_ = true;
      exchange->answered_ = sent && part.last;
      part.done(sent);
      if (!sent) ThrowClosed();
      if (part.last) co_return keep_alive_;
    } else if (exchange->reading_ == nullptr || !co_await PassBody(*exchange)) {
      // ReadAhead finds the end of what the client sends, unless it has paused.
      const bool reads = !at_end_ && received_.size() < ReadAheadBytes();
      if (!reads) co_await LookForClient(*exchange);
      if (exchange->parts_.empty()) co_await Change(reads ? absl::InfiniteDuration() : kLookInterval);
    }
  }
}

awaitable<void> HttpConnection::LookForClient(const Exchange& exchange) {
  const HttpStream::State state = stream_.Look();
  const bool waits_for_more = at_end_ && exchange.reading_ != nullptr;
  if (state == HttpStream::State::kGone || (state == HttpStream::State::kEnded && (!sends_chunks_ || waits_for_more))) {
    Close();
    ThrowClosed();
  }
  if (state == HttpStream::State::kOpen || has_answered_ || absl::Now() < next_question_) co_return;
  question_interval_ = std::max(kLookInterval, 2 * question_interval_);
  next_question_ = absl::Now() + question_interval_;
  co_await Send(kContinue, "");
  EndPhase();
}

awaitable<bool> HttpConnection::PassBody(Exchange& exchange) {
  const Body::value_type& body = parser_->get().body();
  const bool may_continue = parser_->content_length().value_or(0) <= body.max_bytes && !parser_->is_done();
  if (std::exchange(expects_, false) && may_continue && sends_chunks_) {
    co_await Send(kContinue, "");
    EndPhase();
  }
  absl::StatusOr<std::string> received;
  if (exchange.reads_whole_) {
    EndCall();  // for a new connection the server may close this one
    received = co_await ReadBody(exchange);
    EndPhase();
    if (const absl::Status counted = BeginCall(); received.ok() && !counted.ok()) received = counted;
  } else {
    if (!received_.empty()) co_await Turn();
    const absl::Status parsed = ParseBody();
    received = parsed.ok() ? absl::StatusOr<std::string>(std::exchange(parser_->get().body().bytes, "")) : parsed;
    if (received.ok() && received->empty() && !parser_->is_done()) co_return false;
  }
  std::exchange(exchange.reading_, nullptr)(std::move(received));
  co_return true;
}

awaitable<int> HttpConnection::ReadHead(Parser& parser) {
  HeadEnd end;
  size_t length = 0;
  for (bool has_begun = false; length == 0;) {
    // A client may end the request before with an empty line (RFC 9112, 2.2).
    size_t empty = 0;
    while (!has_begun && received_.compare(empty, kNewLine.size(), kNewLine) == 0) empty += kNewLine.size();
    Consume(empty);
    if (!kNewLine.starts_with(received_)) {
      if (!std::exchange(has_begun, true)) BeginPhase(shared_.limits.request);
      if (!absl::ascii_isgraph(static_cast<unsigned char>(received_.front()))) co_return 400;  // TLS, for example
      length = end.Find(std::string_view(received_).substr(0, shared_.limits.head_bytes));
      if (end.HasTooManyFields() || (length == 0 && received_.size() >= shared_.limits.head_bytes)) co_return 431;
      if (length > 0) break;
    }
    if (at_end_) ThrowClosed();
    receiving_ = has_begun;
    co_await Change();
    receiving_ = false;
    if (timed_out_) co_return 408;
  }
  co_await Turn();
  error_code error;
  parser.put(asio::buffer(received_.data(), length), error);
  if (!parser.is_header_done()) co_return 400;
  Consume(length);
  const size_t hosts = parser.get().count(http::field::host);
  if (hosts > 1 || (hosts == 0 && parser.get().version() >= 11)) co_return 400;
  const std::string_view target(parser.get().target().data(), parser.get().target().size());
  if (!target.starts_with('/') && !AuthorityOf(target).has_value()) {
    if (target != "*" || parser.get().method() != http::verb::options) co_return 400;
  }
  const auto transfer = parser.get().find(http::field::transfer_encoding);
  const bool knows =
      transfer == parser.get().end() || absl::EqualsIgnoreCase(std::string(transfer->value()), "chunked");
  co_return knows ? 0 : 501;
}

HttpRequest HttpConnection::RequestOf(const Parser& parser) const {
  HttpRequest request;
  request.method = std::string(parser.get().method_string());
  std::string_view target(parser.get().target().data(), parser.get().target().size());
  const std::optional<std::string_view> authority = AuthorityOf(target);
  if (authority.has_value()) target.remove_prefix(authority->data() + authority->size() - target.data());
  const size_t query = target.find('?');
  request.path = target.substr(0, query);
  if (authority.has_value() && request.path.empty()) request.path = "/";
  if (query != std::string::npos) request.query = target.substr(query + 1);
  for (const auto& field : parser.get()) {
    request.fields.emplace_back(absl::AsciiStrToLower(std::string(field.name_string())), std::string(field.value()));
    if (authority.has_value() && field.name() == http::field::host) request.fields.pop_back();
  }
  if (authority.has_value())
    request.fields.emplace_back("host", *authority);  // in place of the field (RFC 9112, 3.2.2)
  request.peer = peer_;
  request.certificate = certificate_;
  request.has_certificate = has_certificate_;
  return request;
}

absl::Status HttpConnection::ParseBody() {
  absl::Status& status = parser_->get().body().status;
  size_t parsed = 0;
  auto on_chunk = [this, &parsed, &status](uint64_t size, const auto& /*extensions*/, error_code& error) {
    constexpr int64_t kMaxTrailerFields = 16;
    if (size > 0) return;
    const int64_t fields = TrailerFields(std::string_view(received_).substr(parsed));
    if (fields <= kMaxTrailerFields) return;
    status.Update(HttpError(431, absl::StrCat("the trailer of the request's body has ", fields,
                                              " fields; send at most ", kMaxTrailerFields)));
    error = http::error::header_limit;
  };
  parser_->on_chunk_header(on_chunk);
  while (parsed < received_.size() && !parser_->is_done() && status.ok()) {
    error_code error;
    const size_t more = parser_->put(asio::buffer(received_) + parsed, error);
    if (error && error != http::error::need_more) status.Update(HttpError(400, "the request's body is malformed"));
    if (more == 0) break;
    parsed += more;
  }
  Consume(parsed);
  if (parser_->is_done()) parser_->get().clear();  // nothing reads a trailer
  if (parsed == 0 && received_.size() >= ReadAheadBytes() && !parser_->is_done()) {
    status.Update(
        HttpError(400, absl::StrCat("the head of a chunk, or the trailer, of the request's body has more than ",
                                    ReadAheadBytes(), " bytes; send shorter ones")));
  }
  return status;
}

bool HttpConnection::BodyIsHere() {
  if (!parser_->get().body().status.ok()) return false;  // where the body ends is unknown
  if (parser_->is_done()) return true;
  parser_->get().body() = {};
  const bool parsed = ParseBody().ok();
  parser_->get().body().bytes.clear();
  return parsed && parser_->is_done();
}

awaitable<absl::StatusOr<std::string>> HttpConnection::ReadBody(Exchange& exchange) {
  Body::value_type& body = parser_->get().body();
  if (const uint64_t length = parser_->content_length().value_or(body.max_bytes); length > body.max_bytes) {
    co_return BodyTooLarge(body.max_bytes);
  }
  size_t next = 0;
  while (exchange.parts_.empty()) {
    if (!received_.empty()) co_await Turn();
    if (absl::Status status = ParseBody(); !status.ok()) co_return status;
    if (parser_->is_done()) co_return std::move(body.bytes);
    if (at_end_) ThrowClosed();
    if (body.bytes.size() >= next) {
      BeginPhase(shared_.limits.body);
      next = body.bytes.size() + kSliceBytes;
    }
    receiving_ = true;
    co_await Change();
    receiving_ = false;
    if (timed_out_) {
      co_return HttpError(
          408, absl::StrCat("the request's body came too slowly: ", body.bytes.size(),
                            " bytes arrived; send at least 64 KiB in ", absl::FormatDuration(shared_.limits.body)));
    }
  }
  co_return absl::CancelledError("the request has its answer");
}

const std::string& HttpConnection::DateNow() {
  const absl::Time now = absl::Now();
  if (const int64_t second = absl::ToUnixSeconds(now); std::exchange(shared_.date_second, second) != second) {
    shared_.date = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone());
  }
  return shared_.date;
}

std::string HttpConnection::HeadOf(const HttpResponse& response, std::optional<size_t> length) {
  keep_alive_ = keep_alive_ && BodyIsHere();
  const bool has_body = response.status != 204;
  std::string head =
      absl::StrCat("HTTP/1.1 ", response.status, " ", HttpReason(response.status), "\r\nDate: ", DateNow(), "\r\n");
  if (has_body) absl::StrAppend(&head, "Content-Type: ", response.content_type, "\r\n");
  if (has_body && length.has_value()) {
    absl::StrAppend(&head, "Content-Length: ", *length, "\r\n");
  } else if (has_body && sends_chunks_) {
    absl::StrAppend(&head, "Transfer-Encoding: chunked\r\n");
  }
  if (keep_alive_) {
    absl::StrAppend(&head, "Connection: keep-alive\r\nKeep-Alive: timeout=", absl::ToInt64Seconds(shared_.limits.idle),
                    "\r\n");
  } else {
    absl::StrAppend(&head, "Connection: close\r\n");
  }
  for (const HttpFields* fields : {&response.fields, &std::as_const(fields_)}) {
    for (const auto& [name, value] : *fields) absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  return absl::StrCat(head, "\r\n");
}

}  // namespace longshort::server
