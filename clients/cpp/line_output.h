// A file or pipe that lines are written to, and how many of them came through whole.
#pragma once

#include <cstdint>
#include <streambuf>
#include <string>

namespace longshort {

// A stream's buffer: what is put into it is written when the stream is flushed. Once something could not be written,
// nothing more is.
//
// Thread: one at a time.
class LineOutput final : public std::streambuf {
 public:
  // The descriptor stays the caller's.
  explicit LineOutput(int descriptor) : descriptor_(descriptor) {}

  // The lines that were written to their ends, and how many bytes they have.
  int64_t whole_lines() const { return whole_lines_; }
  int64_t whole_line_bytes() const { return whole_line_bytes_; }

  // The system's error that ended the writing (ENOSPC, ...), or 0.
  int error() const { return error_; }

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;
  int_type overflow(int_type byte) override;
  int sync() override;

 private:
  // Counts the lines that end in what was written.
  void CountWritten(const char* bytes, size_t count);

  const int descriptor_;
  std::string unwritten_;
  int64_t written_bytes_ = 0;
  int64_t whole_lines_ = 0;
  int64_t whole_line_bytes_ = 0;
  int error_ = 0;
};

}  // namespace longshort
