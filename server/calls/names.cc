#include "server/calls/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace longshort {

bool IsName(const std::string& text) {
  constexpr size_t kMostBytes = 128;
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMostBytes && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace longshort
