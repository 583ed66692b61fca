// A call of a Client while it runs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "grpcpp/grpcpp.h"

namespace longshort::client {

// The message of the status of a call that Client::Cancel ended.
inline constexpr char kCancelledHere[] = "the client cancelled the call";

// The context of a call, with the metadata of all calls of the client. Client::Cancel ends the call.
class Client::RunningCall final {
 public:
  // `session_id`: the request's session, or empty. Proxies use it to route the calls of a session to one server.
  RunningCall(Client& client, absl::Time deadline, const std::string& session_id = {});
  ~RunningCall() { Leave(); }
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  grpc::ClientContext* context() { return &context_; }

  // Unregisters the call: Cancel then ignores it.
  void Leave();

  // The status of the ended call. Returns CANCELLED after Cancel even if the call failed first, so that the caller does
  // not handle that failure.
  absl::Status StatusOf(const grpc::Status& status);

 private:
  Client& client_;
  grpc::ClientContext context_;
  bool was_cancelled_ = false;  // before it left
};

}  // namespace longshort::client
