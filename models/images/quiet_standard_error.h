// Standard error without what the decoders' libraries print there.
//
// libjpeg tells of a broken image with fprintf(stderr), OpenCV with std::cerr, and OpenCV passes on no handler of
// errors. The image's status says what is wrong; these lines would stand between those of a log.
#pragma once

namespace longshort {

// While one lives, what its thread prints with stdio's `stderr` or with `std::cerr` is dropped; what other threads
// print is not. They may be nested. The first one in a process puts a filter before both streams, which stays.
class QuietStandardError final {
 public:
  QuietStandardError();
  ~QuietStandardError();
  QuietStandardError(const QuietStandardError&) = delete;
  QuietStandardError& operator=(const QuietStandardError&) = delete;
};

}  // namespace longshort
