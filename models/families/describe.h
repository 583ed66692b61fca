// What `longshort-server describe` prints of models of all families.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/families/family.h"

namespace longshort::models {

// Describes a config.json of any architecture. `name` is the file's name in errors.
// Errors: INVALID_ARGUMENT naming the file and the problem.
absl::StatusOr<ModelDescription> DescribeConfig(std::string_view text, const std::string& name);

// Adds the line "classes 3: daisy, rose, tulip" to the task of a classifier, in the form of `longshort models`: the
// first 10 names of labels.txt. Errors: as ParseLabels.
absl::Status NameClasses(std::string_view labels_text, const std::string& name, ModelDescription& description);

// The description as a table, with totals and an explanation of the counts. Ends with a newline.
std::string ToText(const ModelDescription& description);

// Returns docs/config.md as Markdown: the fields of config.json for every architecture, from the parsers' tables.
std::string ConfigPage();

// A published model: a preset of the converter (models/convert), compiled into the program.
struct Preset {
  std::string_view name;    // "vil-ls-medium-224"
  std::string_view config;  // config.json
};

// The presets, sorted by name.
absl::Span<const Preset> Presets();

// The preset's config.json; empty if the name is unknown.
std::string_view FindPreset(std::string_view name);

}  // namespace longshort::models
