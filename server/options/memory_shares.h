// How the server shares out the machine's memory beside weights and caches.
#pragma once

#include <cstdint>

#include "server/options/machine_limits.h"
#include "server/options/server_options.h"

namespace longshort {

// Bytes that gRPC may hold of messages on their way: an eighth of the memory, at least a few of the largest messages.
int64_t MessageBufferBytes(const ServerOptions& options, const MachineLimits& machine);

// Tokens that the prompts of all models may have: an eighth of the memory, and so that two of the longest fit.
int64_t PromptTokens(const ServerOptions& options, const MachineLimits& machine);

// Bytes that the waiting items of one classifier may hold: a 64th of the memory, and so that two of the largest
// messages fit.
int64_t WaitingBytes(const ServerOptions& options, const MachineLimits& machine);

// Tokens that the sessions of one model may hold: a 64th of the memory, and so that two of the longest prompts fit.
int64_t SessionTokens(const ServerOptions& options, const MachineLimits& machine);

// Those that the sessions of one client may hold: a quarter of them, and two of the longest prompts too.
int64_t SessionTokensOfClient(const ServerOptions& options, int64_t of_all);

// Bytes that sessions on their way between servers may have: a 32nd of the memory, 64 MiB at the least; none if the
// server moves none.
int64_t SessionTransferBytes(const ServerOptions& options, const MachineLimits& machine);

// Bytes that the preparation threads may need at once.
int64_t DecodingBytes(const ServerOptions& options);

}  // namespace longshort
