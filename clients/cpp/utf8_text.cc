#include "clients/cpp/utf8_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

uint8_t ByteAt(absl::string_view bytes, size_t place) { return static_cast<uint8_t>(bytes[place]); }

bool IsContinuation(uint8_t byte) { return (byte & 0xC0U) == 0x80U; }

// Bytes of the character that `bytes` begins with; 0 if it begins with none (RFC 3629).
size_t CharacterLength(absl::string_view bytes) {
  const uint8_t first = ByteAt(bytes, 0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(ByteAt(bytes, i))) return 0;
  }
  // The second byte tells longer forms than needed, surrogates, and what is above U+10FFFF.
  const uint8_t second = ByteAt(bytes, 1);
  const bool out_of_range = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                            (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return out_of_range ? 0 : length;
}

}  // namespace

std::string ValidUtf8(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = CharacterLength(bytes);
    absl::StrAppend(&text, length > 0 ? bytes.substr(0, length) : absl::string_view("\uFFFD"));
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

size_t CountCharacters(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !IsContinuation(static_cast<uint8_t>(byte)); }));
}

}  // namespace longshort
