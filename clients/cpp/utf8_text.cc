#include "clients/cpp/utf8_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace longshort {

std::string ValidUtf8(absl::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::optional<Utf8Character> character = FirstUtf8Character({bytes.data(), bytes.size()});
    const size_t length = character.has_value() ? static_cast<size_t>(character->bytes) : 1;
    absl::StrAppend(&text, character.has_value() ? bytes.substr(0, length) : absl::string_view("\uFFFD"));
    bytes.remove_prefix(length);
  }
  return text;
}

size_t CountCharacters(absl::string_view text) {
  const auto begins_character = [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0U) != 0x80U; };
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace longshort
