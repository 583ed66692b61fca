#include "server/lifecycle/port_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace longshort::server {
namespace {

namespace fs = std::filesystem;

absl::Status CannotWrite(const std::string& path) {
  return absl::UnavailableError(absl::StrCat("--port-file=", path, " cannot be written"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PortFile>> PortFile::Create(const std::string& path) {
  std::error_code unknown;
  const fs::file_status there = fs::symlink_status(path, unknown);
  if (!path.empty() && fs::exists(there) && !fs::is_regular_file(there)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--port-file=", path, " exists and is not a regular file; the server would replace it"));
  }
  std::unique_ptr<PortFile> file(new PortFile(path));
  if (path.empty()) return file;
  std::error_code gone;  // usually
  fs::remove(path, gone);
  file->file_.open(file->beside_);
  if (!file->file_) return CannotWrite(path);
  return file;
}

PortFile::~PortFile() {
  std::error_code gone;  // usually, because it was renamed
  if (!beside_.empty()) fs::remove(beside_, gone);
}

absl::Status PortFile::Write(int grpc_port, int http_port) {
  if (path_.empty()) return absl::OkStatus();
  file_ << "{\"grpc\": " << grpc_port << ", \"http\": " << http_port << "}\n";
  file_.close();
  std::error_code error;
  if (file_) fs::rename(beside_, path_, error);
  return !file_ || error ? CannotWrite(path_) : absl::OkStatus();
}

}  // namespace longshort::server
