#include "models/images/quiet_standard_error.h"

#include <cstdio>
#include <iostream>
#include <streambuf>

namespace longshort {
namespace {

thread_local int quiet = 0;  // how many live in this thread

ssize_t WriteUnlessQuiet(void* file, const char* bytes, size_t count) {
  const size_t written = quiet > 0 ? count : std::fwrite(bytes, 1, count, static_cast<std::FILE*>(file));
  return static_cast<ssize_t>(written);
}

class BufferUnlessQuiet final : public std::streambuf {
 public:
  explicit BufferUnlessQuiet(std::streambuf& buffer) : buffer_(buffer) {}

 private:
  int_type overflow(int_type byte) override {
    if (quiet > 0 || traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
    return buffer_.sputc(traits_type::to_char_type(byte));
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    return quiet > 0 ? count : buffer_.sputn(bytes, count);
  }
  int sync() override { return buffer_.pubsync(); }

  std::streambuf& buffer_;
};

// Both filters stay until the process ends: anything may be printed until then.
bool PutFilters() {
  // glibc lets `stderr` be assigned, like any variable.
  cookie_io_functions_t functions = {};
  functions.write = WriteUnlessQuiet;
  std::FILE* const filter = fopencookie(stderr, "w", functions);
  if (filter != nullptr) {
    std::setvbuf(filter, nullptr, _IONBF, 0);
    stderr = filter;
  }
  std::cerr.rdbuf(new BufferUnlessQuiet(*std::cerr.rdbuf()));
  return true;
}

}  // namespace

QuietStandardError::QuietStandardError() {
  static const bool put = PutFilters();
  static_cast<void>(put);
  ++quiet;
}

QuietStandardError::~QuietStandardError() { --quiet; }

}  // namespace longshort
