// One request and its answer on a connection.
//
// The functions are thread-safe and return at once. Callbacks run on the server's I/O thread and must not block. Each
// is called once, with false if the client is gone or the server closes the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {

class HttpExchange {
 public:
  using Done = absl::AnyInvocable<void(bool ok)>;

  virtual ~HttpExchange() = default;

  // The request's head; the body is empty. Thread: the one that serves the exchange, which may move from it.
  virtual HttpRequest& request() = 0;

  // Takes the memory for `bytes` of a body, all that the server is going to hold. An error ends the reading.
  using Charge = absl::AnyInvocable<absl::Status(int64_t bytes)>;
  using Received = absl::AnyInvocable<void(absl::StatusOr<std::string> bytes)>;

  // Reads the whole body, once. Errors: 413 beyond `max_bytes`, 408 if it comes too slowly, 400 if it is malformed,
  // what `charge` returns, those of HttpPlan::is_call if there are too many calls by then. Thread of both callbacks:
  // the I/O thread.
  virtual void ReadBody(size_t max_bytes, Charge charge, Received received) = 0;
  // Waits for more of the request's body: a part that is not empty, or an empty one at the body's end. Errors: 400. One
  // at a time, and not beside ReadBody.
  virtual void Read(Received received) = 0;

  // Sends the whole answer. It ends the exchange. The connection closes after an answer that was given before the body
  // had arrived.
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

  // Runs `task` on the I/O thread, later.
  virtual void RunSoon(absl::AnyInvocable<void()> task) = 0;
};

// How the server treats a request, decided by its head.
struct HttpPlan {
  // The methods that the path takes, without HEAD and OPTIONS. Empty: there is no such path, and `serve` says so.
  std::vector<std::string> methods = {};
  // Writes an error in the form of the path's protocol. Null: as plain text.
  HttpResponse (*write_error)(const absl::Status& status) = nullptr;
  // Whether HttpLimits::calls counts it. If there are too many, `serve` finds UNAVAILABLE in HttpRequest::body_status;
  // RESOURCE_EXHAUSTED with a Refusal if its client has too many.
  bool is_call = false;
  // A client may have as many calls as there is room for besides: one alone half of HttpLimits::calls, the next one
  // half of the rest. Empty: its calls are not counted apart.
  std::string client = {};
  // Whether the connection may stay open for further requests.
  bool keep_alive = true;
  // Fields of every answer, beside its own.
  HttpFields fields = {};
  // Called on the I/O thread as soon as the head has been read, for one of `methods`. It must answer, at once or later.
  // Null: 404.
  std::function<void(const std::shared_ptr<HttpExchange>&)> serve = nullptr;
};

// For HttpPlan::serve.
inline std::function<void(const std::shared_ptr<HttpExchange>&)> AnswerWith(HttpResponse response) {
  return
      [response = std::move(response)](const std::shared_ptr<HttpExchange>& exchange) { exchange->Answer(response); };
}

// Called on the I/O thread. The method of `head` is never HEAD: that is a GET whose answer is sent without its body.
// HttpExchange::request has the head as the router leaves it.
using HttpRouter = std::function<HttpPlan(HttpRequest& head)>;

// One protocol's paths on the HTTP port: the plan for a request; nullopt if its path is not one of the protocol's. If
// the path does not take the request's method, only `methods` and `write_error` are used. Called on the I/O thread.
using HttpFront = std::function<std::optional<HttpPlan>(const HttpRequest& head)>;

}  // namespace longshort::server
