#include "server/options/text_pairs.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace longshort {
namespace {

constexpr size_t kEscapeBytes = 3;

absl::StatusOr<std::string> Decode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, kEscapeBytes - 1);
    if (digits.size() < kEscapeBytes - 1 || !absl::ascii_isxdigit(digits[0]) || !absl::ascii_isxdigit(digits[1])) {
      return absl::InvalidArgumentError("has a % without two hexadecimal digits behind it; write % as %25");
    }
    decoded += absl::HexStringToBytes(digits);
    i += kEscapeBytes - 1;
  }
  if (!IsUtf8(decoded)) return absl::InvalidArgumentError("has a value that is not UTF-8");
  return decoded;
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseTextPairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const absl::string_view member : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    if (absl::StripAsciiWhitespace(member).empty()) continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(member, absl::MaxSplits('=', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(parts.first);
    if (key.empty() || member.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError("has a member without key or without '='; it must be key=value,key=value");
    }
    LS_ASSIGN_OR_RETURN(std::string decoded_key, Decode(key));
    LS_ASSIGN_OR_RETURN(std::string value, Decode(absl::StripAsciiWhitespace(parts.second)));
    pairs.emplace_back(std::move(decoded_key), std::move(value));
  }
  return pairs;
}

}  // namespace longshort
