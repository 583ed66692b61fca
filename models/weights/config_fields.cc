#include "models/weights/config_fields.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace longshort::models {

absl::Status CheckRange(std::string_view file, std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s is %d; it must be in %d..%d", file, field, value, min, max));
}

std::string RangeText(int64_t min, int64_t max) {
  return min == max ? absl::StrCat(min) : absl::StrCat(min, " to ", max);
}

std::string QuotedWords(absl::Span<const std::string_view> words) {
  return absl::StrJoin(words, ", ", [](std::string* text, std::string_view word) {
    absl::StrAppend(text, "\"", std::string(word), "\"");
  });
}

std::vector<std::string_view> NamesOf(const std::vector<FieldDescription>& descriptions) {
  std::vector<std::string_view> names;
  names.reserve(descriptions.size());
  for (const FieldDescription& field : descriptions) names.push_back(field.name);
  return names;
}

void SetField(nlohmann::ordered_json& document, std::string_view name, std::variant<int64_t, bool, double> value) {
  std::visit([&](auto known) { document[std::string(name)] = known; }, value);
}

}  // namespace longshort::models
