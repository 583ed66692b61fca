// The names of the files in a model directory.
#pragma once

#include <array>
#include <string_view>

namespace longshort::models {

// All that loading reads, and that the fingerprint covers.
inline constexpr std::array<std::string_view, 5> kModelFiles = {"config.json", "model.safetensors", "vocabulary.txt",
                                                                "tokenizer.json", "labels.txt"};

}  // namespace longshort::models
