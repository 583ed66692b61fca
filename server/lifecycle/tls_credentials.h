// TLS of the running server: its files, with what log and metrics tell of them, and what gRPC's port asks of
// connections.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/access/tls_files.h"
#include "server/access/tls_watch.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"

namespace longshort {

// Watches the files; null if they name no certificate. Log and metrics, which must outlive the watch, tell what the
// certificate is, when it is replaced, and what is wrong with files. Errors: those of TlsWatch::Start.
absl::StatusOr<std::unique_ptr<TlsWatch>> WatchTlsFiles(const TlsFiles& files, ServerMetrics& metrics, Logger& log);

// Connections speak TLS 1.2 or 1.3 with what `tls` has; what comes instead of it counts for new connections within a
// second. Clients must bring a certificate if it has authorities for them; one that a revocation list names, or for
// which there is no list in date, is refused and logged. Without `tls`: no TLS. Both must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsWatch* tls, Logger& log);

}  // namespace longshort
