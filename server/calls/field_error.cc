#include "server/calls/field_error.h"

#include "absl/strings/escaping.h"

namespace longshort {

std::string Quoted(const std::string& text) {
  constexpr size_t kMost = 64;
  std::string shown = text.substr(0, kMost);
  // A cut inside a character would leave bytes that are not UTF-8.
  while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xC0) == 0x80) shown.pop_back();
  return absl::StrCat("\"", absl::Utf8SafeCEscape(shown), shown.size() < text.size() ? "...\"" : "\"");
}

}  // namespace longshort
