// The exchange of an HttpConnection, and the body that its parser fills.
#pragma once

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/transports/http/http_connection.h"
#include "server/transports/http/http_exchange.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {

// A body as it arrives. Unlike Beast's string_body it reserves no memory for the length that the client announces.
struct HttpConnection::Body {
  // NOLINTBEGIN(readability-identifier-naming): Beast requires these names
  struct value_type {
    // Errors: 413, and those of `charge`.
    absl::Status Append(std::string_view more) {
      const size_t size = bytes.size() + more.size();
      if (size > max_bytes) return BodyTooLarge(max_bytes);
      if (size > bytes.capacity()) {
        const size_t room = std::max(size, std::min(length, 2 * bytes.capacity()));
        if (charge != nullptr) LS_RETURN_IF_ERROR(charge(static_cast<int64_t>(room)));
        bytes.reserve(room);
      }
      bytes.append(more);
      return absl::OkStatus();
    }

    std::string bytes = {};
    size_t max_bytes = std::numeric_limits<size_t>::max();
    size_t length = max_bytes;  // as far as it is known
    HttpExchange::Charge charge = nullptr;
    absl::Status status = {};  // the first error, after which nothing is parsed
  };
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>& /*head*/, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>& /*length*/, boost::system::error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      size_t count = 0;
      for (auto part = boost::asio::buffer_sequence_begin(buffers); part != boost::asio::buffer_sequence_end(buffers);
           ++part) {
        const boost::asio::const_buffer bytes(*part);
        body_.status.Update(body_.Append({static_cast<const char*>(bytes.data()), bytes.size()}));
        count += bytes.size();
      }
      if (!body_.status.ok()) error = boost::beast::http::error::body_limit;
      return count;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
  // NOLINTEND(readability-identifier-naming)
};

// Its functions post to the I/O thread, where the state is.
class HttpConnection::Exchange final : public HttpExchange, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(HttpConnection& connection, HttpRequest request);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  HttpRequest& request() override { return request_; }
  void ReadBody(size_t max_bytes, Charge charge, Received received) override;
  void Read(Received received) override;
  void Answer(HttpResponse response, Done done) override;
  void BeginStream(HttpResponse head) override;
  void Write(std::string part, Done done) override { Push(std::move(part), false, std::move(done)); }
  void EndStream(std::string last, Done done) override { Push(std::move(last), true, std::move(done)); }
  void WhenClosed(absl::AnyInvocable<void()> closed) override;
  void SetTimer(absl::Time time, absl::AnyInvocable<void()> reached) override;
  void Abort() override;
  void RunSoon(absl::AnyInvocable<void()> task) override;

  // For the connection, on the I/O thread:
  // The exchange is over: what still waits ends with an error.
  void End();
  std::deque<Part> parts_;  // of the answer, not sent yet
  Received reading_;
  bool reads_whole_ = false;  // reading_ is of ReadBody
  bool answered_ = false;     // the whole answer was sent

 private:
  // Calls `act` on the I/O thread, with nullptr if the exchange is over.
  template <typename Act>
  void Post(Act act);
  void Push(std::string part, bool last, Done done);

  const std::weak_ptr<HttpConnection> connection_;
  const boost::asio::steady_timer::executor_type executor_;
  Shared& shared_;
  HttpRequest request_;
  // On the I/O thread:
  absl::AnyInvocable<void()> closed_;
  std::optional<boost::asio::steady_timer> timer_;
  std::string head_;  // of a stream, until its first part is sent
  bool over_ = false;
};

}  // namespace longshort::server
