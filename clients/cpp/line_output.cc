#include "clients/cpp/line_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace longshort {
namespace {

// Longer lines are written in parts, so that an answer of any length takes limited memory.
constexpr size_t kMostUnwritten = size_t{1} << 20;

}  // namespace

std::streamsize LineOutput::xsputn(const char* bytes, std::streamsize count) {
  unwritten_.append(bytes, static_cast<size_t>(count));
  return unwritten_.size() <= kMostUnwritten || sync() == 0 ? count : 0;
}

LineOutput::int_type LineOutput::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

int LineOutput::sync() {
  size_t done = 0;
  while (error_ == 0 && done < unwritten_.size()) {
    const ssize_t written = write(descriptor_, unwritten_.data() + done, unwritten_.size() - done);
    if (written > 0) {
      CountWritten(unwritten_.data() + done, static_cast<size_t>(written));
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  unwritten_.clear();
  return error_ == 0 ? 0 : -1;
}

void LineOutput::CountWritten(const char* bytes, size_t count) {
  whole_lines_ += std::count(bytes, bytes + count, '\n');
  for (size_t i = count; i > 0; --i) {
    if (bytes[i - 1] != '\n') continue;
    whole_line_bytes_ = written_bytes_ + static_cast<int64_t>(i);
    break;
  }
  written_bytes_ += static_cast<int64_t>(count);
}

}  // namespace longshort
