// What a family of models says of a config.json: its fields, and what a model of it costs. Without LibTorch.
//
// Costs are for operators who choose a model, and for tests against the published figures. The counts are those of
// fvcore, as in the published figures: 1 for each multiply-add of a convolution, linear layer or matrix product, and 5
// for each output element of a layer norm or batch norm. Softmax, GELU and additions are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "models/weights/config_fields.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// The costs of a part of a model: a row of its description.
struct StageCost {
  static constexpr double kPerNormElement = 5;

  std::string name;  // "stage 1", "layer 2", "head"
  // Length and width of the sequence in its blocks; 0 without blocks.
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t parameters = 0;  // trained numbers
  // For one item. These are integers, but may exceed int64_t for absurd configurations.
  double multiply_adds = 0;    // of matrix products and convolutions
  double normed_elements = 0;  // output elements of layer norms

  // In multiply-adds, including norms.
  double work() const { return multiply_adds + kPerNormElement * normed_elements; }
};

struct ModelDescription {
  std::string architecture;
  std::string item;  // the unit of the multiply-adds: "one image of 224 x 224 pixels"
  // What a classifier answers, and what it was trained on: "multi_label_classification of 3 classes, trained on single
  // documents". Empty for a language model.
  std::string task;
  int64_t classes = 0;  // of a classifier; 0 for a language model or an encoder without a head
  std::vector<StageCost> stages;
  // Language models only: the maximum cache of a stream, in elements (4 bytes each in fp32, 2 in bf16), and the size of
  // its open chunk, which is float32 in both precisions.
  int64_t cached_numbers = 0;
  int64_t open_chunk_bytes = 0;

  int64_t parameters() const;
  double work() const;
};

// Adds the number of elements of each trained tensor to a stage: to that of the first prefix that its name begins with,
// else to the last stage.
//   prefixes  each with its index in `stages`
void AddParameters(absl::Span<const TensorShape> tensors, absl::Span<const std::pair<std::string, size_t>> prefixes,
                   std::vector<StageCost>& stages);

// A table of docs/config.md.
struct ConfigSection {
  std::string_view title;
  std::string_view first_column;  // what a row describes: "field"
  std::string_view text;          // above the table
  std::vector<FieldDescription> rows;
};

// A family without its networks. models/families/CMakeLists.txt lists the families; the function Config() in the
// namespace of a family makes its entry.
struct FamilyConfig {
  std::string_view architecture;  // in config.json
  // `name` is the file's name in errors. Errors: INVALID_ARGUMENT naming the file and the problem.
  absl::StatusOr<ModelDescription> (*describe)(std::string_view text, const std::string& name);
  std::vector<ConfigSection> sections;
};

// All families, in the order of the list.
std::vector<FamilyConfig> FamilyConfigs();

// FamilyConfig::describe of a family that has `parse` and Describe.
template <auto parse>
absl::StatusOr<ModelDescription> ParseAndDescribe(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const auto config, parse(text, name));
  return Describe(config);
}

// --- what `longshort-server describe` prints of models of all families ---

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
