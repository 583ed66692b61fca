// Strict UTF-8: one character at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace longshort {

struct Utf8Character {
  char32_t code_point = 0;
  int64_t bytes = 0;  // 1 to 4
};

// The first character of `text`, or nothing if `text` is empty or does not start with a well-formed one: overlong
// forms, surrogates, code points above U+10FFFF and cut sequences are malformed.
std::optional<Utf8Character> FirstUtf8Character(std::string_view text);

// Whether `text` consists of well-formed characters.
bool IsUtf8(std::string_view text);

}  // namespace longshort
