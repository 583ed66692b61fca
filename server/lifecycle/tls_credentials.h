// TLS of the running server: its files, with what log and metrics tell of them, and what gRPC's port asks of
// connections.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/access/tls_files.h"
#include "server/access/tls_watch.h"
#include "server/grpc_1_51/memory_file.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"

namespace longshort::server {

// The files with what they hold. Stays where it is.
struct ServerTls {
  // Of what is in use, for gRPC: certificate and key, so that those of one pair are read, and the clients' authorities.
  MemoryFile identity;
  MemoryFile client_authorities;
  int64_t published = 0;                      // how often; by the watch's thread
  std::unique_ptr<TlsWatch> watch = nullptr;  // last: its thread uses the other members
};

// Watches the files; null if they name no certificate. Log and metrics, which must outlive the watch, tell what the
// certificate is, when it is replaced, and what is wrong with files. Errors: those of TlsWatch::Start
// and MemoryFile.
absl::StatusOr<std::unique_ptr<ServerTls>> WatchTlsFiles(const TlsFiles& files, ServerMetrics& metrics, Logger& log);

// Connections speak TLS 1.2 or 1.3 with what `tls` has; what comes instead of it counts for new connections within a
// second. Clients must bring a certificate if it has authorities for them; one that a revocation list names, or for
// which there is no list in date, is refused and logged. Without `tls`: no TLS. Both must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerTls* tls, Logger& log);

}  // namespace longshort::server
