// The published models by name: the converter's presets (models/convert), compiled into the program.
#pragma once

#include <string_view>

#include "absl/types/span.h"

namespace longshort::models {

struct Preset {
  std::string_view name;    // "vil-ls-medium-224"
  std::string_view config;  // config.json
};

// The presets, sorted by name.
absl::Span<const Preset> Presets();

// The preset's config.json; empty if the name is unknown.
std::string_view FindPreset(std::string_view name);

}  // namespace longshort::models
