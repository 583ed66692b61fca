// Strict UTF-8: overlong forms, surrogates, code points above U+10FFFF and cut sequences are malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longshort {

// Takes the bytes of a character one after the other (Unicode 15, table 3-7).
class Utf8Decoder final {
 public:
  enum class Result {
    kMore,      // the byte begins a character, or goes on with it
    kWhole,     // the byte completes a character; the next one begins another
    kRejected,  // no character goes on, or begins, with this byte; the next one begins another
  };

  Result Take(uint8_t byte);
  // Of the character that is complete.
  char32_t code_point() const { return code_point_; }
  // Forgets the character that is begun.
  void Reset() { missing_ = 0; }

 private:
  Result Begin(uint8_t byte);

  char32_t code_point_ = 0;
  int missing_ = 0;  // bytes
  uint8_t lowest_ = 0x80;
  uint8_t highest_ = 0xBF;  // range of the next byte
};

struct Utf8Character {
  char32_t code_point = 0;
  int64_t bytes = 0;  // 1 to 4
};

// The first character of `text`, or nothing if `text` is empty or does not start with a well-formed one.
std::optional<Utf8Character> FirstUtf8Character(std::string_view text);

// Whether `text` consists of well-formed characters.
bool IsUtf8(std::string_view text);

}  // namespace longshort
