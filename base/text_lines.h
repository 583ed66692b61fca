// The lines of text files that people edit.
#pragma once

#include <string_view>

namespace longshort {

// Without the byte order mark that some editors write.
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

}  // namespace longshort
