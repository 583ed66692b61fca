// Percent-encoding, as in URLs and in OpenTelemetry's variables.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace longshort {

// "%41" becomes "A"; with `plus_is_space`, "+" becomes " ", as in queries. nullopt for "%" without two digits.
inline std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_space = false) {
  constexpr int kHexadecimal = 16;
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    unsigned char byte = 0;
    const char* end = text.data() + i + 3;
    if (std::from_chars(text.data() + i + 1, end, byte, kHexadecimal).ptr != end) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace longshort
