// Who can reach an address that is listened on.
#pragma once

#include "absl/status/status.h"
#include "server/options/server_options.h"

namespace longshort {

// Whether only this machine reaches the address of --`option`: all that its host stands for is loopback.
// Errors: INVALID_ARGUMENT naming the option, the address, and what to do; also if the host's addresses cannot be
// found.
absl::Status CheckIsLoopback(const char* option, const ListenAddress& address);

}  // namespace longshort
