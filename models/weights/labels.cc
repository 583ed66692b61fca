#include "models/weights/labels.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace longshort {
absl::StatusOr<std::vector<std::string>> ParseLabels(std::string_view text, int64_t classes, const std::string& name) {
  std::vector<std::string> labels;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // as some editors end lines
    if (line.empty() || !IsUtf8(line)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: line %d is %s; it must be a label", name,
                                                        labels.size() + 1, line.empty() ? "empty" : "not UTF-8"));
    }
    labels.emplace_back(line);
  }
  if (static_cast<int64_t>(labels.size()) != classes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: there are %d labels, the model has %d classes", name, labels.size(), classes));
  }
  return labels;
}

}  // namespace longshort
