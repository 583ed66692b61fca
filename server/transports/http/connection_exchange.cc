#include "server/transports/http/connection_exchange.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace longshort::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

HttpConnection::Exchange::Exchange(HttpConnection& connection, HttpRequest request)
    : connection_(connection.weak_from_this()),
      executor_(connection.timer_.get_executor()),
      shared_(connection.shared_),
      request_(std::move(request)) {
  ++shared_.exchanges;
}

HttpConnection::Exchange::~Exchange() { --shared_.exchanges; }

template <typename Act>
void HttpConnection::Exchange::Post(Act act) {
  asio::dispatch(executor_, [self = shared_from_this(), act = std::move(act)]() mutable {
    const std::shared_ptr<HttpConnection> connection = self->over_ ? nullptr : self->connection_.lock();
    const bool is_open = connection != nullptr && connection->is_open_;
    act(*self, is_open ? connection.get() : nullptr);
    if (is_open) connection->changed_.cancel();
  });
}

void HttpConnection::Exchange::ReadBody(size_t max_bytes, Charge charge, Received received) {
  Post([max_bytes, charge = std::move(charge), received = std::move(received)](Exchange& self,
                                                                               HttpConnection* connection) mutable {
    if (connection == nullptr) return received(absl::CancelledError("the client disconnected"));
    Body::value_type& body = connection->parser_->get().body();
    body.max_bytes = max_bytes;
    body.length = std::min<uint64_t>(max_bytes, connection->parser_->content_length().value_or(max_bytes));
    body.charge = std::move(charge);
    self.reads_whole_ = true;
    self.reading_ = std::move(received);
  });
}

void HttpConnection::Exchange::Read(Received received) {
  Post([received = std::move(received)](Exchange& self, HttpConnection* connection) mutable {
    if (connection == nullptr) return received(absl::CancelledError("the client disconnected"));
    self.reading_ = std::move(received);
  });
}

void HttpConnection::Exchange::Answer(HttpResponse response, Done done) {
  Post([response = std::move(response), done = std::move(done)](Exchange& self, HttpConnection* connection) mutable {
    if (connection == nullptr) return done(false);
    std::string head = connection->HeadOf(response, response.content().size());
    if (connection->without_body_) response.body.clear(), response.shared = {};
    self.parts_.push_back(
        {std::move(head), std::move(response.body), std::move(response.shared), true, std::move(done)});
  });
}

void HttpConnection::Exchange::BeginStream(HttpResponse head) {
  Post([head = std::move(head)](Exchange& self, HttpConnection* connection) {
    if (connection != nullptr) self.head_ = connection->HeadOf(head, std::nullopt);
  });
}

void HttpConnection::Exchange::WhenClosed(absl::AnyInvocable<void()> closed) {
  Post([closed = std::move(closed)](Exchange& self, HttpConnection* connection) mutable {
    if (connection == nullptr) return closed();
    self.closed_ = std::move(closed);
  });
}

void HttpConnection::Exchange::SetTimer(absl::Time time, absl::AnyInvocable<void()> reached) {
  Post([time, reached = std::move(reached)](Exchange& self, HttpConnection* connection) mutable {
    if (connection == nullptr) return;
    self.timer_.emplace(self.executor_);
    self.timer_->expires_after(absl::ToChronoNanoseconds(time - MonotonicNow()));
    self.timer_->async_wait([reached = std::move(reached)](const error_code& error) mutable {
      if (!error) reached();
    });
  });
}

void HttpConnection::Exchange::Abort() {
  Post([](Exchange&, HttpConnection* connection) {
    if (connection != nullptr) connection->Close();
  });
}

void HttpConnection::Exchange::RunSoon(absl::AnyInvocable<void()> task) { asio::post(executor_, std::move(task)); }

void HttpConnection::Exchange::End() {
  timer_.reset();
  over_ = true;
  if (closed_ != nullptr && !answered_) std::exchange(closed_, nullptr)();
  closed_ = nullptr;
  if (reading_ != nullptr) std::exchange(reading_, nullptr)(absl::CancelledError("the client disconnected"));
  for (; !parts_.empty(); parts_.pop_front()) parts_.front().done(false);
}

void HttpConnection::Exchange::Push(std::string part, bool last, Done done) {
  Post([part = std::move(part), last, done = std::move(done)](Exchange& self, HttpConnection* connection) mutable {
    if (connection == nullptr) return done(false);
    const bool chunks = connection->sends_chunks_;
    std::string head = std::exchange(self.head_, "");
    if (connection->without_body_) part.clear();
    if (chunks && !part.empty()) absl::StrAppend(&head, absl::Hex(part.size()), "\r\n");
    if (chunks && !part.empty()) part += "\r\n";
    if (chunks && last && !connection->without_body_) part += "0\r\n\r\n";
    self.parts_.push_back({std::move(head), std::move(part), {}, last, std::move(done)});
  });
}

}  // namespace longshort::server
