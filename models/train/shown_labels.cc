#include "models/train/shown_labels.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longshort::models {
namespace {

// Whether the byte begins a character in UTF-8.
bool Begins(char byte) { return (byte & 0xC0) != 0x80; }

}  // namespace

std::string_view Beginning(std::string_view text, size_t bytes) {
  while (bytes > 0 && bytes < text.size() && !Begins(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

std::string ShownLabel(const std::string& label) {
  const std::string shown(Beginning(label, 60));
  return absl::StrCat(absl::Utf8SafeCHexEscape(shown), shown.size() < label.size() ? "..." : "");
}

std::string QuotedLabel(const std::string& label) { return absl::StrCat("'", ShownLabel(label), "'"); }

std::string QuotedLabels(absl::Span<const std::string> labels) {
  std::vector<std::string> quoted;
  for (const std::string& label : labels) quoted.push_back(QuotedLabel(label));
  return quoted.empty() ? "no label" : Listed(std::move(quoted));
}

std::string Listed(std::vector<std::string> parts) {
  constexpr size_t kMost = 20;
  const size_t more = parts.size() - std::min(parts.size(), kMost);
  parts.resize(parts.size() - more);
  return absl::StrCat(absl::StrJoin(parts, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace longshort::models
