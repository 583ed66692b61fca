// The work on a request to /v1/completions.
#pragma once

#include <memory>

#include "server/call/rpc.h"

namespace longshort::server {

// For a row of CompletionsRequest and Completions that streams its answers. A request that does not ask for a stream
// has one answer, which is sent with the status.
std::unique_ptr<CallWork> MakeCompletions(Call& call);

}  // namespace longshort::server
