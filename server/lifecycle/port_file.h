// The file of --port-file. Scripts that let the system choose the ports wait for this file, and read the ports from
// it.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

class PortFile final {
 public:
  // Creates FILE.new, so that a path that cannot be written is an error at once. Write renames it to `path`; the
  // destructor removes it otherwise. An empty path: no file. Errors: INVALID_ARGUMENT if `path` is a device, a link or
  // another non-regular file, which Write would replace; UNAVAILABLE if the file cannot be written.
  static absl::StatusOr<std::unique_ptr<PortFile>> Create(const std::string& path);
  ~PortFile();
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

  // Writes the file; call it once. A reader never sees a partial file. Errors: UNAVAILABLE.
  absl::Status Write(int grpc_port, int http_port);

 private:
  explicit PortFile(const std::string& path) : path_(path), beside_(path.empty() ? "" : path + ".new") {}

  const std::string path_;
  const std::string beside_;
  std::ofstream file_;
};

}  // namespace longshort::server
