// The file that a run over many documents writes its answers to, a line each, and that a later run goes on with.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/document_source.h"
#include "clients/cpp/line_output.h"
#include "longshort/v1/models.pb.h"

namespace longshort {

// Which line is about which document follows from its place alone: lines are in the order of the documents, one for
// each. Names may be equal. A line counts once its newline is there; what comes behind the last newline is cut off
// before anything is written.
//
// The file is locked for this process, so that two runs do not write it at once.
class AnswerFile final {
 public:
  // Errors, each naming the file: INVALID_ARGUMENT if it is no regular file, or cannot be opened or made; ABORTED if
  // another run writes it.
  static absl::StatusOr<std::unique_ptr<AnswerFile>> Open(const std::string& path);
  ~AnswerFile();
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;

  const std::string& path() const { return path_; }

  // Whether the path leads to this file.
  bool IsSameFile(const std::string& path) const;

  // Passes over the documents of `source` that have a line, and returns the errors among these lines.
  // Errors: INVALID_ARGUMENT, if the lines are not of these documents or not of the model: with the first line that
  // differs, and how. The file is unchanged then.
  absl::StatusOr<std::vector<absl::Status>> PassAnswered(DocumentSource& source, const v1::Model& model);

  // Cuts off what comes behind the last newline, and returns how many bytes that were. REQUIRES: PassAnswered, which
  // has found it. Errors: the system's.
  absl::StatusOr<int64_t> CutPartialLine();

  // Behind the last line. REQUIRES: CutPartialLine.
  std::ostream& stream() { return stream_; }

  // Lines that the file has, those that came through since it was opened included.
  int64_t lines() const { return old_lines_ + output_.whole_lines(); }

  // Brings the lines to the disk. If writing failed, cuts off what was written of the last one. Errors: the system's,
  // naming the file.
  absl::Status Finish();

 private:
  AnswerFile(std::string path, int descriptor);

  absl::Status Failure(int error) const;

  const std::string path_;
  const int descriptor_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int64_t old_lines_ = 0;
  int64_t old_bytes_ = 0;  // of whole lines
  LineOutput output_;
  std::ostream stream_;
};

}  // namespace longshort
