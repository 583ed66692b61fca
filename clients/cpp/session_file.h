// Files of exported sessions: a sequence of SessionPart messages, each preceded by its length (protobuf's delimited
// form).
#pragma once

#include <fstream>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/terminal.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "longshort/v1/sessions.pb.h"

namespace longshort::client {

// Writes a session to a temporary file that only its owner can read, and renames it when complete. Writes directly to
// pipes, devices and standard output ("-").
class SessionFileWriter final {
 public:
  SessionFileWriter(const std::string& path, Terminal& terminal);
  // Removes the temporary file unless Keep succeeded.
  ~SessionFileWriter();
  SessionFileWriter(const SessionFileWriter&) = delete;
  SessionFileWriter& operator=(const SessionFileWriter&) = delete;

  // Returns false after the first write error.
  bool Write(const v1::SessionPart& part);
  // Completes the file. Errors: UsageError naming the file, if it could not be written.
  absl::Status Keep();

 private:
  absl::Status CannotWrite() const;

  const std::string path_;
  std::string beside_;  // the temporary file; empty if there is none
  std::ofstream file_;
  std::ostream& output_;
  int error_ = 0;  // errno of the first failure
};

// Reads a session from a file, or from standard input ("-").
class SessionFileReader final {
 public:
  SessionFileReader(const std::string& path, Terminal& terminal) : input_(path == "-" ? &terminal.input : &file_) {
    if (path != "-") file_.open(path, std::ios::binary);
    readable_ = path == "-" || file_.is_open();
  }

  // Returns false at the end or if the file is not a session.
  bool Read(v1::SessionPart& part);
  // Returns whether the file could be opened and everything read from it was valid.
  bool readable() const { return readable_; }

 private:
  std::ifstream file_;
  google::protobuf::io::IstreamInputStream input_;
  bool readable_;
};

}  // namespace longshort::client
