// Labels in messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace longshort::models {

// The beginning of UTF-8 text: at most `bytes` bytes, up to the end of a character.
std::string_view Beginning(std::string_view text, size_t bytes);

// A label in a message: UTF-8 with escapes for control characters, cut at 60 bytes.
std::string ShownLabel(const std::string& label);
// The same in single quotes.
std::string QuotedLabel(const std::string& label);
// "'a', 'b' and 2 more", as Listed; "no label" if there is none.
std::string QuotedLabels(absl::Span<const std::string> labels);

// The first 20 of `parts`, separated by commas, and how many more there are.
std::string Listed(std::vector<std::string> parts);

}  // namespace longshort::models
