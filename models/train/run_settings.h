// The settings and data that determine a run, by name. A run continues from its checkpoint, and replaces its model,
// only if they are the same. The number of steps and the time limit are not among them: they may change.
#pragma once

#include <map>
#include <string>

namespace longshort::models {

using RunSettings = std::map<std::string, std::string>;

// Adds the fields of a config.json ("layers", "preprocessing.crop_height").
void AddConfig(const std::string& json, RunSettings& settings);

// One line per setting, and the reverse.
std::string SettingsText(const RunSettings& settings);
RunSettings ParseSettings(const std::string& text);

// The settings that differ, for a message: "batch is 8 there and 16 here". "" if none does.
std::string DifferenceOf(const RunSettings& there, const RunSettings& here);

}  // namespace longshort::models
