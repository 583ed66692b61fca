// An exported session in a file: its parts one after the other, each behind its length (protobuf's delimited form).
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/terminal.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "longshort/v1/sessions.pb.h"

namespace longshort {

// Writes a session beside its place, so that a file under its name is always a whole one. "-" is standard output.
class SessionFileWriter final {
 public:
  SessionFileWriter(std::string path, Terminal& terminal);
  // Takes away what was not kept.
  ~SessionFileWriter();
  SessionFileWriter(const SessionFileWriter&) = delete;
  SessionFileWriter& operator=(const SessionFileWriter&) = delete;

  // False, from then on, if it cannot be written.
  bool Write(const v1::SessionPart& part);
  // The session is whole. Errors: INVALID_ARGUMENT naming the file, if it could not be written.
  absl::Status Keep();

 private:
  const std::string path_;
  const std::string beside_;  // empty for standard output
  std::ofstream file_;
  std::ostream& output_;
};

// "-" is standard input.
class SessionFileReader final {
 public:
  // Errors: INVALID_ARGUMENT naming the file, if it cannot be opened.
  static absl::StatusOr<std::unique_ptr<SessionFileReader>> Open(const std::string& path, Terminal& terminal);

  // False at the end, or where the file is no session.
  bool Read(v1::SessionPart& part);
  // Whether all that was read were parts of a session.
  bool readable() const { return readable_; }

 private:
  explicit SessionFileReader(std::unique_ptr<std::ifstream> file, std::istream& input)
      : file_(std::move(file)), input_(&input) {}

  const std::unique_ptr<std::ifstream> file_;  // null for standard input
  google::protobuf::io::IstreamInputStream input_;
  bool readable_ = true;
};

}  // namespace longshort
