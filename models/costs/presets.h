// The published models by name: the presets of the converter (models/convert), built in.
#pragma once

#include <string_view>

#include "absl/types/span.h"

namespace longshort::models {

struct Preset {
  std::string_view name;    // "vil-ls-medium-224"
  std::string_view config;  // config.json
};

// In the order of their names.
absl::Span<const Preset> Presets();

// The preset's config.json; empty if there is none of that name.
std::string_view FindPreset(std::string_view name);

}  // namespace longshort::models
