// TLS of the running server: its files, their log lines and metrics, and the credentials of gRPC's port.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/access/tls_files.h"
#include "server/access/tls_material.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/transports/grpc_1_51/memory_file.h"

namespace longshort::server {

// The TLS files and their current content. Must not be moved: the watch refers to the other members.
struct ServerTls {
  // In-memory files for gRPC: certificate and key together, so that gRPC reads a matching pair; and the clients'
  // authorities.
  MemoryFile identity;
  MemoryFile client_authorities;
  int64_t published = 0;                      // number of times; written by the watch's thread
  std::unique_ptr<TlsWatch> watch = nullptr;  // last: its thread uses the other members
};

// Watches the files; null without a certificate. The log and the metrics, which must outlive the watch, report the
// certificate, its replacements, and errors of the files. Errors: those of TlsWatch::Start and MemoryFile.
absl::StatusOr<std::unique_ptr<ServerTls>> WatchTlsFiles(const TlsFiles& files, ServerMetrics& metrics, Logger& log);

// Credentials for TLS 1.2 or 1.3 with the current content of `tls`; new connections use changed content within a
// second. If there are client authorities, clients must present a certificate; a revoked one, or one without a valid
// revocation list, is refused and logged. Without `tls`: no TLS. Both arguments must outlive the server.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerTls* tls, Logger& log);

}  // namespace longshort::server
