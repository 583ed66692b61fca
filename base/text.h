// Forms of text: tables for terminals, lines of files that people edit, numbers in messages, and percent-encoding.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longshort {

using TextRow = std::vector<std::string>;

// Formats a table for a terminal: a line for each row, indented. Columns are as wide as their longest cell in UTF-8
// characters, and two spaces apart. REQUIRES: no row is empty.
std::string TextTable(const std::vector<TextRow>& rows, size_t indent = 0);

// Returns `text` without the byte order mark that some editors write.
inline std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

// Removes the first line from `text`, which is not empty. Returns the line without its end, "\n" or "\r\n".
inline std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The shortest text that parses to the same number, so that an error does not print 1.0000001 as 1.
template <typename Number>
std::string NumberText(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value).ptr};
}

// The whole number that JSON writes as 16.0 or 4e0. nullopt: it has a fraction, or is beyond 2^53, where a float64
// stands for several whole numbers.
inline std::optional<int64_t> IntegerOf(double number) {
  constexpr double kMax = 9007199254740992;
  if (!(std::abs(number) <= kMax) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// Decodes percent-encoding, as in URLs and in OpenTelemetry's variables: "%41" becomes "A"; with `plus_is_space`, "+"
// becomes " ", as in queries. nullopt for "%" without two digits.
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
