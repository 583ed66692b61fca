// The Unicode classes of code points that byte-level BPE splits words by: \p{L}, \p{N} and \s of its pattern, and \w
// of added tokens.
//
// They are those of Unicode 16, as in the package `tokenizers` 0.23: RE2's tables (Debian's are of Unicode 15), and the
// characters that Unicode 16 added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace longshort::models {

enum class CodePointClass : uint8_t { kOther, kLetter, kNumber, kSpace };

// Immutable, hence thread-safe.
class CodePointClasses final {
 public:
  // The table of the process, made by the first call.
  static const CodePointClasses& Get();

  CodePointClass Of(char32_t code_point) const {
    return code_point < table_.size() ? table_[code_point] : CodePointClass::kOther;
  }

 private:
  CodePointClasses();

  std::vector<CodePointClass> table_;  // the planes that have letters, numbers or spaces
};

// Whether \w matches: letters, marks, decimal and letter numbers, connectors, joiners, circled and squared letters.
bool IsWordCharacter(char32_t code_point);

// A code point of well-formed UTF-8.
struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // 1 to 4
};

// The character that begins at `text[begin]`. REQUIRES: one begins there, and `text` is well-formed.
inline CodePoint CodePointAt(std::string_view text, size_t begin) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[begin + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

// The character that ends before `text[end]`. REQUIRES: one ends there, and `text` is well-formed.
inline CodePoint CodePointBefore(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while ((static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return CodePointAt(text, begin);
}

}  // namespace longshort::models
