#include "models/train/run_settings.h"

#include <algorithm>
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
  RunSettings all = there;
  all.insert(here.begin(), here.end());
  std::vector<std::string> differences;
  for (const auto& [name, unused] : all) {
    const auto value = [&name = name](const RunSettings& settings) {
      const auto found = settings.find(name);
      return found == settings.end() ? "not set" : found->second;
    };
    const std::string old_value = value(there), new_value = value(here);
    if (old_value == new_value) continue;
    // A hash of data is long, and its start says as much.
    differences.push_back(
        absl::StrCat(name, " is ", old_value.substr(0, 40), " there and ", new_value.substr(0, 40), " here"));
  }
  return absl::StrJoin(differences, ", ");
}

}  // namespace longshort::models
