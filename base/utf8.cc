#include "base/utf8.h"

#include <array>

namespace longshort {
namespace {

// What a first byte says: which of its bits belong to the code point, and the least code point that needs this many
// bytes.
struct LeadForm {
  uint8_t mask;   // bits that mark the form
  uint8_t value;  // what they are
  int64_t bytes;
  char32_t least;
};

constexpr std::array<LeadForm, 4> kLeadForms = {{
    {0b1000'0000, 0b0000'0000, 1, 0},
    {0b1110'0000, 0b1100'0000, 2, 0x80},
    {0b1111'0000, 0b1110'0000, 3, 0x800},
    {0b1111'1000, 0b1111'0000, 4, 0x10000},
}};

constexpr char32_t kLargest = 0x10FFFF;

bool IsSurrogate(char32_t code_point) { return code_point >= 0xD800 && code_point <= 0xDFFF; }

std::optional<Utf8Character> Read(std::string_view text, const LeadForm& form) {
  if (static_cast<int64_t>(text.size()) < form.bytes) return std::nullopt;
  char32_t code_point = static_cast<uint8_t>(text[0]) & static_cast<uint8_t>(~form.mask);
  for (int64_t i = 1; i < form.bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0b1100'0000) != 0b1000'0000) return std::nullopt;
    code_point = code_point << 6 | (byte & 0b0011'1111);
  }
  if (code_point < form.least || code_point > kLargest || IsSurrogate(code_point)) return std::nullopt;
  return Utf8Character{code_point, form.bytes};
}

}  // namespace

std::optional<Utf8Character> FirstUtf8Character(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const LeadForm& form : kLeadForms) {
    if ((static_cast<uint8_t>(text[0]) & form.mask) == form.value) return Read(text, form);
  }
  return std::nullopt;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::optional<Utf8Character> character = FirstUtf8Character(text);
    if (!character) return false;
    text.remove_prefix(static_cast<size_t>(character->bytes));
  }
  return true;
}

}  // namespace longshort
