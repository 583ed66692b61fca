#include "models/train/run_settings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace longshort::models {

void AddConfig(const std::string& json, RunSettings& settings) {
  const nlohmann::json fields = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!fields.is_object()) return;
  const nlohmann::json flat = fields.flatten();
  for (const auto& [path, value] : flat.items()) {
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    settings[name] = value.dump();
  }
}

std::string SettingsText(const RunSettings& settings) {
  return absl::StrCat(absl::StrJoin(settings, "\n", absl::PairFormatter("=")), "\n");
}

RunSettings ParseSettings(const std::string& text) {
  RunSettings settings;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(line, absl::MaxSplits('=', 1));
    settings.insert(setting);
  }
  return settings;
}

std::string DifferenceOf(const RunSettings& there, const RunSettings& here) {
  std::set<std::string> names;
  for (const auto& [name, value] : there) names.insert(name);
  for (const auto& [name, value] : here) names.insert(name);
  const auto value_in = [](const RunSettings& settings, const std::string& name) -> std::optional<std::string> {
    const auto found = settings.find(name);
    return found == settings.end() ? std::nullopt : std::optional(found->second);
  };
  // A hash of data is long, and its start says as much.
  const auto shown = [](const std::optional<std::string>& value) { return value.value_or("not set").substr(0, 40); };
  std::vector<std::string> differences;
  for (const std::string& name : names) {
    const std::optional<std::string> old_value = value_in(there, name), new_value = value_in(here, name);
    if (old_value != new_value) {
      differences.push_back(absl::StrCat(name, " is ", shown(old_value), " there and ", shown(new_value), " here"));
    }
  }
  return absl::StrJoin(differences, ", ");
}

}  // namespace longshort::models
