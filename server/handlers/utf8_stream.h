// Converts a stream of bytes to text that is valid UTF-8 in every piece.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8.h"

namespace longshort::server {

// Holds back the bytes of an incomplete character. Bytes that are not UTF-8 become U+FFFD, one for each maximal
// subpart: the longest beginning of a well-formed character, or else a single byte (Unicode 15, section 3.9, the
// practice of the WHATWG decoder). The text does not depend on how the bytes are divided into pieces.
class Utf8Stream {
 public:
  // Appends bytes and returns the text that they complete.
  std::string Append(std::string_view bytes);
  // At the end: U+FFFD if a character is incomplete, otherwise "".
  std::string Flush();

 private:
  void AppendByte(char byte, std::string& text);

  Utf8Decoder decoder_;
  std::string held_;  // the beginning of a character
};

}  // namespace longshort::server
