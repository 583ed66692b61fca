#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/status.hpp>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/connection_exchange.h"
#include "server/http/http_connection.h"
#include "server/http/http_status.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using boost::system::error_code;

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
  HttpPlan plan = shared_.router(head);
  fields_ = std::move(plan.fields);
  exchange_ = std::make_shared<Exchange>(*this, std::move(head));
  const std::shared_ptr<Exchange> exchange = exchange_;
  if (!parser.is_done() && absl::EqualsIgnoreCase(exchange->request().Find("expect").value_or(""), "100-continue") &&
      parser.content_length().value_or(0) <= plan.max_body_bytes) {
    co_await Send("HTTP/1.1 100 Continue\r\n\r\n", "");
  }
  if (!plan.streams_body) {
    exchange->request().body_status = co_await ReadBody(parser, plan.max_body_bytes);
    exchange->request().body = std::move(parser.get().body());
  }
  without_body_ = exchange->request().method == "HEAD";
  sends_chunks_ = parser.get().version() >= 11;
  keep_alive_ = parser.keep_alive() && plan.keep_alive && sends_chunks_ && (plan.streams_body || parser.is_done());
  EndPhase();
  const bool is_counted = plan.is_call && shared_.calls < shared_.limits.calls();
  if (is_counted) ++shared_.calls;
  const absl::Cleanup uncount = [this, is_counted] { shared_.calls -= is_counted ? 1 : 0; };
  if (plan.is_call && !is_counted) {
    exchange->request().body_status = absl::UnavailableError(
        absl::StrCat("the server has ", shared_.calls, " calls by HTTP in progress, its limit; try again in a second"));
  }
  plan.serve(exchange);
  const bool stays = co_await ServeExchange(exchange, parser, plan);
  exchange_ = nullptr;
  exchange->End();
  body_bytes_.SetAmount(0);
  co_return stays;
}

awaitable<bool> HttpConnection::ServeExchange(const std::shared_ptr<Exchange>& exchange, Parser& parser,
                                              const HttpPlan& plan) {
  while (true) {
    if (!exchange->parts_.empty()) {
      Part part = std::move(exchange->parts_.front());
      exchange->parts_.pop_front();
      bool sent = false;
      try {
        co_await Send(part.head, part.body);
        EndPhase();
        sent = true;
      } catch (const boost::system::system_error&) {
        Close();
      }
      exchange->answered_ = sent && part.last;
      part.done(sent);
      if (!sent) ThrowClosed();
      if (part.last) co_return keep_alive_&& parser.is_done();
    } else if (!PassBody(*exchange, parser, plan.max_body_bytes)) {
      if (at_end_) {
        Close();
        ThrowClosed();
      }
      co_await Change();
    }
  }
}

bool HttpConnection::PassBody(Exchange& exchange, Parser& parser, size_t max_bytes) {
  if (exchange.reading_ == nullptr) return false;
  const absl::Status parsed = ParseBody(parser, max_bytes);
  std::string body = std::exchange(parser.get().body(), "");
  if (parsed.ok() && body.empty() && !parser.is_done()) return false;
  auto read = std::exchange(exchange.reading_, nullptr);
  read(parsed.ok() ? absl::StatusOr<std::string>(std::move(body)) : parsed);
  return true;
}

awaitable<int> HttpConnection::ReadHead(Parser& parser) {
  error_code error = http::error::need_more;
  bool has_begun = false;
  size_t used = 0;
  while (true) {
    if (!received_.empty()) {
      if (!std::exchange(has_begun, true)) BeginPhase(shared_.limits.request);
      const std::string_view head = std::string_view(received_).substr(0, shared_.limits.head_bytes - used);
      const size_t parsed = parser.put(asio::buffer(head.data(), head.size()), error);
      received_.erase(0, parsed);
      used += parsed;
      room_.cancel();
      if (parser.is_header_done()) break;
      if (error != http::error::need_more) co_return 400;
      if (used + received_.size() >= shared_.limits.head_bytes) co_return 431;
    }
    if (at_end_) ThrowClosed();
    receiving_ = has_begun;
    co_await Change();
    receiving_ = false;
    if (timed_out_) co_return 408;
  }
  const auto transfer = parser.get().find(http::field::transfer_encoding);
  const bool knows =
      transfer == parser.get().end() || absl::EqualsIgnoreCase(std::string(transfer->value()), "chunked");
  co_return knows ? 0 : 501;
}

HttpRequest HttpConnection::RequestOf(const Parser& parser) const {
  HttpRequest request;
  request.method = std::string(parser.get().method_string());
  const std::string target(parser.get().target());
  const size_t query = target.find('?');
  request.path = target.substr(0, query);
  if (query != std::string::npos) request.query = target.substr(query + 1);
  for (const auto& field : parser.get()) {
    request.fields.emplace_back(absl::AsciiStrToLower(std::string(field.name_string())), std::string(field.value()));
  }
  request.peer = peer_;
  request.certificate = certificate_;
  request.has_certificate = has_certificate_;
  return request;
}

absl::Status HttpConnection::ParseBody(Parser& parser, size_t max_bytes) {
  size_t parsed = 0;
  while (parsed < received_.size() && !parser.is_done()) {
    error_code error;
    const size_t more = parser.put(asio::buffer(received_) + parsed, error);
    if (error && error != http::error::need_more) return HttpError(400, "the request's body is malformed");
    if (more == 0) break;
    parsed += more;
  }
  received_.erase(0, parsed);
  if (parsed > 0) {
    room_.cancel();
  } else if (received_.size() >= kReadAheadBytes && !parser.is_done()) {
    return HttpError(400, absl::StrCat("the head of a chunk, or the trailer, of the request's body has more than ",
                                       kReadAheadBytes, " bytes; send shorter ones"));
  }
  const size_t bytes = parser.get().body().size();
  if (bytes > max_bytes) return BodyTooLarge(max_bytes);
  if (bytes <= kSliceBytes || shared_.limits.bodies == nullptr) return absl::OkStatus();
  if (body_bytes_.Grow(static_cast<int64_t>(bytes)).ok()) return absl::OkStatus();
  return absl::UnavailableError("the server holds too many bytes of requests; try again in a second");
}

awaitable<absl::Status> HttpConnection::ReadBody(Parser& parser, size_t max_bytes) {
  if (parser.content_length().value_or(0) > max_bytes) co_return BodyTooLarge(max_bytes);
  size_t next = 0;
  while (true) {
    if (absl::Status status = ParseBody(parser, max_bytes); !status.ok()) co_return status;
    if (parser.is_done()) co_return absl::OkStatus();
    if (at_end_) ThrowClosed();
    if (parser.get().body().size() >= next) {
      BeginPhase(shared_.limits.body);
      next = parser.get().body().size() + kSliceBytes;
    }
    receiving_ = true;
    co_await Change();
    receiving_ = false;
    if (timed_out_) {
      co_return HttpError(
          408, absl::StrCat("the request's body came too slowly: ", parser.get().body().size(),
                            " bytes arrived; send at least 64 KiB in ", absl::FormatDuration(shared_.limits.body)));
    }
  }
}

std::string HttpConnection::HeadOf(const HttpResponse& response, std::optional<size_t> length) const {
  std::string head = absl::StrCat("HTTP/1.1 ", response.status, " ", HttpReason(response.status), "\r\n");
  if (!response.content_type.empty()) absl::StrAppend(&head, "Content-Type: ", response.content_type, "\r\n");
  if (length.has_value()) {
    absl::StrAppend(&head, "Content-Length: ", *length, "\r\n");
  } else if (sends_chunks_) {
    absl::StrAppend(&head, "Transfer-Encoding: chunked\r\n");
  }
  absl::StrAppend(&head, "Connection: ", keep_alive_ ? "keep-alive" : "close", "\r\n");
  for (const HttpFields* fields : {&response.fields, &fields_}) {
    for (const auto& [name, value] : *fields) absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  return absl::StrCat(head, "\r\n");
}

}  // namespace longshort::server
