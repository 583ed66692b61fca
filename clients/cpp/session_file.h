// An exported session in a file: its parts one after the other, each behind its length (protobuf's delimited form).
#pragma once

#include <fstream>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/terminal.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "longshort/v1/sessions.pb.h"

namespace longshort::client {

// Writes a session beside its place, for its owner's eyes only, so that a file under its name is always a whole one.
// What is no file (a pipe, a device) is written to as it is; "-" is standard output.
class SessionFileWriter final {
 public:
  SessionFileWriter(const std::string& path, Terminal& terminal);
  // Takes away what was not kept.
  ~SessionFileWriter();
  SessionFileWriter(const SessionFileWriter&) = delete;
  SessionFileWriter& operator=(const SessionFileWriter&) = delete;

  // False, from then on, if it cannot be written.
  bool Write(const v1::SessionPart& part);
  // The session is whole. Errors: UsageError naming the file, if it could not be written.
  absl::Status Keep();

 private:
  absl::Status CannotWrite() const;

  const std::string path_;
  std::string beside_;  // what is renamed to `path_` in the end; empty if nothing is
  std::ofstream file_;
  std::ostream& output_;
  int error_ = 0;  // the system's number of the first thing that went wrong
};

// "-" is standard input.
class SessionFileReader final {
 public:
  SessionFileReader(const std::string& path, Terminal& terminal) : input_(path == "-" ? &terminal.input : &file_) {
    if (path != "-") file_.open(path, std::ios::binary);
    readable_ = path == "-" || file_.is_open();
  }

  // False at the end, or where the file is no session.
  bool Read(v1::SessionPart& part);
  // Whether the file could be opened, and all that was read were parts of a session.
  bool readable() const { return readable_; }

 private:
  std::ifstream file_;
  google::protobuf::io::IstreamInputStream input_;
  bool readable_;
};

}  // namespace longshort::client
