// The Connect protocol (connectrpc.com): every RPC by a POST of its message, as JSON or as protobuf; RPCs without side
// effects by GET, too; streams by messages in envelopes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/call/call_environment.h"
#include "server/call/rpc.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_exchange.h"

namespace longshort::server {

// A codec for a request of `rpc`, by POST, or by GET if it has no side effects. `max_message_bytes`: of a message,
// unpacked. Errors: 415 for a content type that the RPC does not have; UNIMPLEMENTED for bidirectional streams, and for
// compression in a query.
absl::StatusOr<std::unique_ptr<HttpCodec>> MakeConnectCodec(const Rpc& rpc, const HttpRequest& head,
                                                            int64_t max_message_bytes);

// Connect's JSON for an error, with its HTTP status.
HttpResponse ConnectError(const absl::Status& status);

// Serves these RPCs, of whatever service, by the paths /package.Service/Method. Both arguments must outlive the front
// and its calls.
HttpFront ConnectFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

}  // namespace longshort::server
