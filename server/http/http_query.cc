#include "server/http/http_query.h"

#include <charconv>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace longshort::server {

std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_space) {
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

std::optional<std::string> QueryParameter(std::string_view query, std::string_view name) {
  for (const absl::string_view parameter : absl::StrSplit(absl::string_view(query.data(), query.size()), '&')) {
    const std::string_view one(parameter.data(), parameter.size());
    const size_t equals = one.find('=');
    if (DecodePercent(one.substr(0, equals), true) != name) continue;
    return equals == std::string_view::npos ? "" : DecodePercent(one.substr(equals + 1), true);
  }
  return std::nullopt;
}

}  // namespace longshort::server
