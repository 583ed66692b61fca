// Labels and tables in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace longshort::models {

// A label in a message: UTF-8 with escapes for control characters, cut at 60 bytes.
std::string ShownLabel(const std::string& label);
// The same in single quotes.
std::string QuotedLabel(const std::string& label);
// "'a', 'b'", or "no label".
std::string QuotedLabels(absl::Span<const std::string> labels);

// The rows, indented by two, with columns as wide as their longest cell. The first column is left-aligned. Only the
// first `most` rows are shown, after which a line says how many more there are.
// REQUIRES: all rows have as many cells as `head`.
std::string TextTable(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                      int64_t most);

}  // namespace longshort::models
