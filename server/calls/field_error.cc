#include "server/calls/field_error.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace longshort::server {

std::string Quoted(const std::string& text) {
  constexpr size_t kMax = 64;
  std::string shown = text.substr(0, kMax);
  // A cut inside a character would leave bytes that are not UTF-8.
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xC0) == 0x80) shown.pop_back();
  return absl::StrCat("\"", absl::Utf8SafeCEscape(shown), shown.size() < text.size() ? "...\"" : "\"");
}

bool IsName(const std::string& text) {
  constexpr size_t kMaxBytes = 128;
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace longshort::server
