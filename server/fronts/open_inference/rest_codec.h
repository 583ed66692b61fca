// How the protocol's REST form carries the messages of one call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/call/rpc.h"
#include "server/transports/http/http_codec.h"

namespace longshort::server {

// What a path names beside the RPC; empty where it names nothing.
struct RestTarget {
  std::string name;
  std::string version;
};

// A codec for one request of `rpc`, one of OpenInferenceRpcs. `max_message_bytes`: as for a gRPC message, unpacked.
std::unique_ptr<HttpCodec> MakeRestCodec(const Rpc& rpc, RestTarget target, int64_t max_message_bytes);

// {"error": "..."}, with the HTTP status of the error.
HttpResponse RestError(const absl::Status& status);

}  // namespace longshort::server
