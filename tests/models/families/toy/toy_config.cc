#include "tests/models/families/toy/toy_config.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"

namespace longshort::models {
namespace {

constexpr std::array<ConfigField<ToyConfig>, 5> kToyFields = {{
    {"cells", &ToyConfig::cells, "Cells along a side of the image.", 1, 64},
    {"width", &ToyConfig::width, "Width of the hidden layer.", 1, 1 << 14},
    {"channels", &ToyConfig::channels, "Red, green, blue.", 3, 3},
    {"classes", &ToyConfig::classes, "Classes.", 1, 1 << 20},
    {"layer_norm_epsilon", &ToyConfig::layer_norm_epsilon, "Added to the variance in layer norms."},
}};
constexpr std::array<std::string_view, 1> kToyArchitecture = {"toy"};

std::vector<FieldDescription> ToyFields() {
  std::vector<FieldDescription> fields = {DescribeChoice("architecture", kToyArchitecture, "The family.")};
  AddDescriptions(kToyFields, fields);
  fields.push_back({"preprocessing", "an object", "See Preprocessing of images."});
  return fields;
}

}  // namespace

absl::StatusOr<ToyConfig> ParseToyConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kToyArchitecture).status());
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(ToyFields())));
  ToyConfig config;
  LS_RETURN_IF_ERROR(ReadFields(fields, kToyFields, config));
  LS_ASSIGN_OR_RETURN(config.preprocessing, ReadImagePreprocessing(fields));
  LS_RETURN_IF_ERROR(CheckRanges(kToyFields, config, name));
  return config;
}

std::vector<TensorShape> ToyTensors(const ToyConfig& config) {
  std::vector<TensorShape> tensors;
  TensorList model("", tensors);
  model.AddAffine("hidden", {config.width, config.inputs()});
  model.AddAffine("norm", {config.width});
  model.AddAffine("head", {config.classes, config.width});
  return tensors;
}

ModelDescription Describe(const ToyConfig& config) {
  ModelDescription description{
      .architecture = "toy",
      .item = absl::StrFormat("one image of %d x %d pixels", config.preprocessing.crop_width,
                              config.preprocessing.crop_height),
      .task = absl::StrCat("single_label_classification of ", config.classes, " classes"),
      .classes = config.classes,
      .stages = {{.name = "hidden",
                  .multiply_adds = static_cast<double>(config.inputs() * config.width),
                  .normed_elements = static_cast<double>(config.width)},
                 {.name = "head", .multiply_adds = static_cast<double>(config.width * config.classes)}}};
  AddParameters(ToyTensors(config), {{"hidden.", 0}, {"norm.", 0}}, description.stages);
  return description;
}

namespace toy {

FamilyConfig Config() {
  return {.architecture = "toy",
          .describe = ParseAndDescribe<ParseToyConfig>,
          .sections = {{"Toy", "field", "A classifier by mean colours.", ToyFields()}}};
}

}  // namespace toy
}  // namespace longshort::models
