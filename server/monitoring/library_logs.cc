#include "server/monitoring/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>
#include <string>

#include "absl/strings/match.h"

namespace longshort {
namespace {

// The libraries take functions without state.
std::atomic<Logger*> target = nullptr;

void FromGrpc(gpr_log_func_args* line) {
  if (line->severity != GPR_LOG_SEVERITY_ERROR) return;
  // Whoever speaks no TLS, stops amid the handshake, or has no right certificate, is no error of the server's.
  if (absl::StartsWith(line->message, "Handshake failed") || absl::StrContains(line->message, "Handshake timed out")) {
    return target.load()->Info("client refused", {{"why", std::string(line->message)}});
  }
  // So are headers that say what they may not, and anybody can send as many as he likes.
  const bool from_client = absl::StartsWith(line->message, "Error parsing metadata");
  target.load()->Log(from_client ? LogLevel::kDebug : LogLevel::kError, "gRPC",
                     {{"error", std::string(line->message)}});
}

// A message that cannot be parsed is the client's mistake, and on its request's line.
void FromProtobuf(google::protobuf::LogLevel level, const char*, int, const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  target.load()->Log(fatal ? LogLevel::kError : LogLevel::kDebug, "Protobuf", {{"error", message}});
}

}  // namespace

void CaptureLibraryLogs(Logger& log) {
  target = &log;
  gpr_set_log_function(FromGrpc);
  google::protobuf::SetLogHandler(FromProtobuf);
}

}  // namespace longshort
