#include "models/tokenizer/code_points.h"

#include <algorithm>
#include <string>

#include "absl/types/span.h"
#include "base/utf8.h"
#include "re2/re2.h"

namespace longshort::models {
namespace {

// The last code points of a range are part of it.
struct Range {
  char32_t first;
  char32_t last;
};

// What Unicode 16 has beyond Unicode 15.
constexpr Range kNewLetters[] = {{0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
                                 {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x11380, 0x11389},
                                 {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
                                 {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0}, {0x13460, 0x143FA},
                                 {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED},
                                 {0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D}};
constexpr Range kNewNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
                                 {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
constexpr Range kNewMarks[] = {{0x897, 0x897},     {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0},
                               {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
                               {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
                               {0x1E5EE, 0x1E5EF}};

constexpr Range kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                             {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

constexpr char32_t kTableSize = 0x40000;  // planes 0 to 3; the others have no letters, numbers or spaces

bool IsIn(absl::Span<const Range> ranges, char32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return range.first <= code_point && code_point <= range.last; });
}

bool IsSurrogate(char32_t code_point) { return code_point >= 0xD800 && code_point < 0xE000; }

}  // namespace

const CodePointClasses& CodePointClasses::Get() {
  static const auto* const classes = new CodePointClasses();
  return *classes;
}

CodePointClasses::CodePointClasses() : table_(kTableSize, CodePointClass::kOther) {
  const RE2 letter("\\pL");
  const RE2 number("\\pN");
  for (char32_t i = 0; i < kTableSize; ++i) {
    if (IsSurrogate(i)) continue;
    const std::string character = Utf8Of(i);
    if (RE2::FullMatch(character, letter)) table_[i] = CodePointClass::kLetter;
    if (RE2::FullMatch(character, number)) table_[i] = CodePointClass::kNumber;
  }
  const auto set = [this](absl::Span<const Range> ranges, CodePointClass to) {
    for (const Range& range : ranges) std::fill(&table_[range.first], &table_[range.last] + 1, to);
  };
  set(kNewLetters, CodePointClass::kLetter);
  set(kNewNumbers, CodePointClass::kNumber);
  set(kSpaces, CodePointClass::kSpace);
}

bool IsWordCharacter(char32_t code_point) {
  // The last four ranges are the symbols among Unicode's alphabetic characters.
  static const RE2* const word = new RE2(
      "[\\pL\\pM\\p{Nd}\\p{Nl}\\p{Pc}\\x{200C}\\x{200D}"
      "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]");
  return IsIn(kNewLetters, code_point) || IsIn(kNewNumbers, code_point) || IsIn(kNewMarks, code_point) ||
         RE2::FullMatch(Utf8Of(code_point), *word);
}

}  // namespace longshort::models
