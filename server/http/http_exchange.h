// One request and its answer on a connection.
//
// The functions are thread-safe and return at once. Callbacks run on the server's I/O thread and must not block. Each
// is called once, with false if the client is gone or the server closes the connection.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace longshort::server {

class HttpExchange {
 public:
  using Done = absl::AnyInvocable<void(bool ok)>;

  virtual ~HttpExchange() = default;

  // The request. For a plan with `streams_body` the body is empty; Read returns it.
  // Thread: the one that serves the exchange, which may move from it.
  virtual HttpRequest& request() = 0;

  // Waits for more of the request's body: a part that is not empty, or an empty one at the body's end. The status is an
  // error if the body cannot be read to its end. Only for a plan with `streams_body`; one at a time.
  virtual void Read(absl::AnyInvocable<void(absl::StatusOr<std::string> part)> received) = 0;

  // Sends the whole answer. It ends the exchange.
  virtual void Answer(HttpResponse response, Done done) = 0;
  // The same without a callback.
  void Answer(HttpResponse response) {
    Answer(std::move(response), [](bool) {});
  }
  // Begins an answer whose body is sent in parts: by Write, and the last one by EndStream, which ends the exchange. The
  // body of `head` is ignored.
  virtual void BeginStream(HttpResponse head) = 0;
  virtual void Write(std::string part, Done done) = 0;
  virtual void EndStream(std::string last, Done done) = 0;

  // Calls `closed` when the client closes the connection before the answer has been sent.
  virtual void WhenClosed(absl::AnyInvocable<void()> closed) = 0;
  // Calls `reached` at `time` (of MonotonicNow), unless the exchange has ended by then.
  virtual void SetTimer(absl::Time time, absl::AnyInvocable<void()> reached) = 0;
  // Closes the connection.
  virtual void Abort() = 0;

  // Runs `task`, which processes `bytes`, on the I/O thread if they are few, and otherwise on a worker thread, so that
  // a large request does not delay others.
  virtual void Run(size_t bytes, absl::AnyInvocable<void()> task) = 0;
};

// How the server treats a request, decided by its head.
struct HttpPlan {
  // A larger body is not read; `serve` finds the reason in HttpRequest::body_status.
  size_t max_body_bytes = 0;
  // Whether `serve` is called before the body is read.
  bool streams_body = false;
  // Whether HttpLimits::calls counts it. If there are too many, `serve` finds UNAVAILABLE in HttpRequest::body_status.
  bool is_call = false;
  // Whether the connection may stay open for further requests.
  bool keep_alive = true;
  // Fields of every answer, beside its own.
  HttpFields fields = {};
  // Called on the I/O thread. It must answer, at once or later.
  std::function<void(const std::shared_ptr<HttpExchange>&)> serve;
};

// Called on the I/O thread.
using HttpRouter = std::function<HttpPlan(const HttpRequest& head)>;

}  // namespace longshort::server
