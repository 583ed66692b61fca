// The file that --port-file names: scripts that let the system choose the ports wait for it, and read them.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

class PortFile final {
 public:
  // Nothing is at `path` before Write, but what cannot be written there is known: FILE.new is, until then or the end of
  // the object. An empty path: no file.
  // Errors: INVALID_ARGUMENT if a device, a link or whatever is no file has that name, and would be replaced;
  // UNAVAILABLE if it cannot be written.
  static absl::StatusOr<std::unique_ptr<PortFile>> Create(const std::string& path);
  ~PortFile();
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

  // Once. Who waits for the file never reads half of it. Errors: UNAVAILABLE.
  absl::Status Write(int grpc_port, int http_port);

 private:
  explicit PortFile(const std::string& path) : path_(path), beside_(path.empty() ? "" : path + ".new") {}

  const std::string path_;
  const std::string beside_;
  std::ofstream file_;
};

}  // namespace longshort::server
