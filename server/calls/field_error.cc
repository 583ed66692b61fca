#include "server/calls/field_error.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace longshort::server {

bool IsName(const std::string& text) {
  constexpr size_t kMaxBytes = 128;
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace longshort::server
