// Strict UTF-8: overlong forms, surrogates, code points above U+10FFFF and truncated sequences are malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longshort {

// Decodes text byte by byte (Unicode 15, table 3-7).
class Utf8Decoder final {
 public:
  enum class Result {
    kMore,      // the byte begins or continues a character
    kWhole,     // the byte completes a character
    kRejected,  // the byte neither continues nor begins a character; the next byte begins one
  };

  Result Take(uint8_t byte);
  // The code point of the completed character.
  char32_t code_point() const { return code_point_; }
  // Discards an incomplete character.
  void Reset() { missing_ = 0; }

 private:
  Result Begin(uint8_t byte);

  char32_t code_point_ = 0;
  int missing_ = 0;  // bytes that complete the character
  uint8_t lowest_ = 0x80;
  uint8_t highest_ = 0xBF;  // end of the next byte's range
};

struct Utf8Character {
  char32_t code_point = 0;
  int64_t bytes = 0;  // 1 to 4
};

// The first character of `text`, or nullopt if `text` is empty or does not start with a well-formed character.
std::optional<Utf8Character> FirstUtf8Character(std::string_view text);

// The character's form in UTF-8. REQUIRES: a code point up to U+10FFFF that is not a surrogate.
std::string Utf8Of(char32_t code_point);

// Whether `text` consists of well-formed characters.
bool IsUtf8(std::string_view text);

// A client's text in quotes for a message: cut to 64 bytes, with control characters escaped.
std::string Quoted(std::string_view text);

}  // namespace longshort
