#include "clients/cpp/session_file.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/delimited_message_util.h"

namespace longshort {

SessionFileWriter::SessionFileWriter(std::string path, Terminal& terminal)
    : path_(std::move(path)),
      beside_(path_ == "-" ? "" : absl::StrCat(path_, ".part")),
      output_(beside_.empty() ? terminal.output : file_) {
  if (!beside_.empty()) file_.open(beside_, std::ios::binary | std::ios::trunc);
}

SessionFileWriter::~SessionFileWriter() {
  file_.close();
  if (!beside_.empty()) std::remove(beside_.c_str());
}

bool SessionFileWriter::Write(const v1::SessionPart& part) {
  return output_.good() && google::protobuf::util::SerializeDelimitedToOstream(part, &output_);
}

absl::Status SessionFileWriter::Keep() {
  output_.flush();
  if (output_.good() && (beside_.empty() || std::rename(beside_.c_str(), path_.c_str()) == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(beside_.empty() ? "standard output" : path_, " cannot be written: is the disk full?"));
}

absl::StatusOr<std::unique_ptr<SessionFileReader>> SessionFileReader::Open(const std::string& path,
                                                                           Terminal& terminal) {
  if (path == "-") {
    return std::unique_ptr<SessionFileReader>(new SessionFileReader(nullptr, terminal.input));
  }
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!file->is_open()) return absl::InvalidArgumentError(absl::StrCat(path, " cannot be read"));
  std::istream& input = *file;
  return std::unique_ptr<SessionFileReader>(new SessionFileReader(std::move(file), input));
}

bool SessionFileReader::Read(v1::SessionPart& part) {
  part.Clear();
  bool at_end = false;
  if (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&part, &input_, &at_end)) return true;
  readable_ = readable_ && at_end;
  return false;
}

}  // namespace longshort
