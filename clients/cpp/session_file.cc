#include "clients/cpp/session_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/failures.h"
#include "google/protobuf/util/delimited_message_util.h"

namespace longshort::client {
namespace {

namespace fs = std::filesystem;

// Resolves links, so that the rename replaces a link's target instead of the link.
std::string Resolved(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved.string();
}

// Returns whether the path is a pipe or a device, which must not be replaced by a file.
bool IsNoFile(const std::string& path) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

SessionFileWriter::SessionFileWriter(const std::string& path, Terminal& terminal)
    : path_(path == "-" || IsNoFile(path) ? path : Resolved(path)), output_(path == "-" ? terminal.output : file_) {
  if (path == "-") return;
  if (IsNoFile(path)) {
    file_.open(path, std::ios::binary);
  } else {
    std::string beside = absl::StrCat(path_, ".XXXXXX");
    const int made = mkstemp(beside.data());
    if (made >= 0) {
      close(made);
      beside_ = std::move(beside);
      file_.open(beside_, std::ios::binary);
    }
  }
  if (!file_.is_open()) {
    error_ = errno;
    file_.setstate(std::ios::failbit);
  }
}

SessionFileWriter::~SessionFileWriter() {
  file_.close();
  if (!beside_.empty()) std::remove(beside_.c_str());
}

bool SessionFileWriter::Write(const v1::SessionPart& part) {
  if (!output_.good()) return false;
  const bool written = google::protobuf::util::SerializeDelimitedToOstream(part, &output_);
  if (!written) error_ = errno;
  return written;
}

absl::Status SessionFileWriter::Keep() {
  if (output_.good() && !output_.flush()) error_ = errno;
  if (!output_.good()) return CannotWrite();
  if (beside_.empty() || std::rename(beside_.c_str(), path_.c_str()) == 0) {
    beside_.clear();
    return absl::OkStatus();
  }
  error_ = errno;
  return CannotWrite();
}

absl::Status SessionFileWriter::CannotWrite() const {
  const std::string what =
      absl::StrCat(path_ == "-" ? "standard output" : path_, " cannot be written: ", std::strerror(error_));
  const bool is_full = error_ == ENOSPC || error_ == EDQUOT || error_ == EIO;
  return is_full ? absl::InternalError(what) : UsageError(what);
}

bool SessionFileReader::Read(v1::SessionPart& part) {
  part.Clear();
  bool at_end = false;
  if (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&part, &input_, &at_end)) return true;
  readable_ = readable_ && at_end;
  return false;
}

}  // namespace longshort::client
