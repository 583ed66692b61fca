// The exchange of an HttpConnection, and the body that its parser fills.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/message.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_connection.h"
#include "server/http/http_exchange.h"

namespace longshort::server {

// A body as it arrives. Unlike Beast's string_body it reserves no memory for the length that the client announces.
struct HttpConnection::Body {
  // NOLINTBEGIN(readability-identifier-naming): Beast requires these names
  using value_type = std::string;
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
        body_.append(static_cast<const char*>(bytes.data()), bytes.size());
        count += bytes.size();
      }
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
  void Read(absl::AnyInvocable<void(absl::StatusOr<std::string>)> received) override;
  void Answer(HttpResponse response, Done done) override;
  void BeginStream(HttpResponse head) override;
  void Write(std::string part, Done done) override { Push(std::move(part), false, std::move(done)); }
  void EndStream(std::string last, Done done) override { Push(std::move(last), true, std::move(done)); }
  void WhenClosed(absl::AnyInvocable<void()> closed) override;
  void SetTimer(absl::Time time, absl::AnyInvocable<void()> reached) override;
  void Abort() override;
  void Run(size_t bytes, absl::AnyInvocable<void()> task) override;

  // For the connection, on the I/O thread:
  // The exchange is over: what still waits ends with an error.
  void End();
  std::deque<Part> parts_;  // of the answer, not sent yet
  absl::AnyInvocable<void(absl::StatusOr<std::string>)> reading_;
  bool answered_ = false;  // the whole answer was sent

 private:
  // Calls `act` on the I/O thread, with nullptr if the exchange is over.
  template <typename Act>
  void Post(Act act);
  void Push(std::string part, bool last, Done done);

  const std::weak_ptr<HttpConnection> connection_;
  const boost::asio::ip::tcp::socket::executor_type executor_;
  Shared& shared_;
  HttpRequest request_;
  // On the I/O thread:
  absl::AnyInvocable<void()> closed_;
  std::optional<boost::asio::steady_timer> timer_;
  std::string head_;  // of a stream, until its first part is sent
  bool over_ = false;
};

}  // namespace longshort::server
