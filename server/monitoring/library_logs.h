// Sends what gRPC and Protobuf have to say to the server's log.
#pragma once

#include "server/monitoring/logger.h"

namespace longshort {

// For the rest of the process, so `log` must never be destroyed before exit; errors only: libraries say little else of
// use.
void CaptureLibraryLogs(Logger& log);

}  // namespace longshort
