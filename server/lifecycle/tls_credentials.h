// What gRPC's port asks of connections: nothing, or TLS and perhaps a certificate.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "server/log/logger.h"
#include "server/tls/tls_watch.h"

namespace longshort {

// Connections speak TLS 1.2 or 1.3 with what `tls` has; what comes instead of it counts for new connections within a
// second. Clients must bring a certificate if it has authorities for them; one that a revocation list names, or for
// which there is no list in date, is refused and logged. Without `tls`: no TLS. Both must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsWatch* tls, Logger& log);

}  // namespace longshort
