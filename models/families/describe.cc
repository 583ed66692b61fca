
#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/families/family.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

// For example "12,345,678".
std::string Grouped(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string grouped;
  for (size_t place = 0; place < digits.size(); ++place) {
    if (place > 0 && (digits.size() - place) % 3 == 0) grouped += ',';
    grouped += digits[place];
  }
  return grouped;
}

// 4 digits and a suitable unit, for example "8.725 G".
std::string Scaled(double number) {
  struct Unit {
    double size;
    const char* name;
  };
  for (const Unit unit : {Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e3, "k"}}) {
    if (number >= unit.size) return absl::StrFormat("%.4g %s", number / unit.size, unit.name);
  }
  return absl::StrCat(number);
}

std::string Mebibytes(int64_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

std::string Row(const std::string& name, const std::string& tokens, const std::string& width,
                const std::string& parameters, const std::string& work) {
  return absl::StrFormat("%-12s %8s %7s %14s %14s\n", name, tokens, width, parameters, work);
}

std::string Size(int64_t size) { return size == 0 ? "" : Grouped(size); }

}  // namespace

int64_t ModelDescription::parameters() const {
  return std::accumulate(stages.begin(), stages.end(), int64_t{0},
                         [](int64_t sum, const StageCost& stage) { return sum + stage.parameters; });
}

double ModelDescription::work() const {
  return std::accumulate(stages.begin(), stages.end(), 0.0,
                         [](double sum, const StageCost& stage) { return sum + stage.work(); });
}

void AddParameters(absl::Span<const TensorShape> tensors, absl::Span<const std::pair<std::string, size_t>> prefixes,
                   std::vector<StageCost>& stages) {
  for (const TensorShape& tensor : tensors) {
    const auto found = std::find_if(prefixes.begin(), prefixes.end(),
                                    [&tensor](const auto& prefix) { return tensor.name.starts_with(prefix.first); });
    const size_t stage = found == prefixes.end() ? stages.size() - 1 : found->second;
    stages[stage].parameters += CountParameters({&tensor, 1});
  }
}

absl::StatusOr<ModelDescription> DescribeConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  std::vector<std::string_view> names;
  const std::vector<FamilyConfig> families = FamilyConfigs();
  names.reserve(families.size());
  for (const FamilyConfig& family : families) names.push_back(family.architecture);
  LS_ASSIGN_OR_RETURN(const size_t architecture, fields.Choice("architecture", names));
  return families[architecture].describe(text, name);
}

absl::Status NameClasses(std::string_view labels_text, const std::string& name, ModelDescription& description) {
  constexpr int64_t kShown = 10;
  if (description.classes == 0) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(std::vector<std::string> labels, ParseLabels(labels_text, description.classes, name));
  const bool is_cut = description.classes > kShown;
  if (is_cut) labels.resize(kShown);
  absl::StrAppend(&description.task, "\nclasses ", description.classes, ": ",
                  absl::Utf8SafeCHexEscape(absl::StrJoin(labels, ", ")), is_cut ? ", ... (labels.txt lists all)" : "");
  return absl::OkStatus();
}

std::string ToText(const ModelDescription& description) {
  std::string text = absl::StrCat(description.architecture, ": multiply-adds of ", description.item, "\n");
  if (!description.task.empty()) absl::StrAppend(&text, description.task, "\n");
  absl::StrAppend(&text, "\n", Row("", "tokens", "width", "parameters", "multiply-adds"));
  for (const StageCost& stage : description.stages) {
    absl::StrAppend(
        &text, Row(stage.name, Size(stage.tokens), Size(stage.width), Grouped(stage.parameters), Scaled(stage.work())));
  }
  absl::StrAppend(&text, Row("total", "", "", Grouped(description.parameters()), Scaled(description.work())));
  if (description.cached_numbers > 0) {
    absl::StrAppend(&text, "\nA stream's cache, before rounding to pages: ",
                    Mebibytes(4 * description.cached_numbers + description.open_chunk_bytes), " in fp32, ",
                    Mebibytes(2 * description.cached_numbers + description.open_chunk_bytes), " in bf16.\n");
  }
  absl::StrAppend(&text,
                  "\nA multiply-add of a convolution or matrix product counts as 1, an output element of a norm as 5.\n"
                  "Softmax, GELU and additions are free.\n");
  return text;
}

namespace {

constexpr std::string_view kIntroduction =
    R"(# config.json

This page is the output of `longshort-server describe --fields`. Every model directory has a
`config.json` of one family, which the field `architecture` names. Every field of the family is
required, unless its meaning says "Absent". Unknown fields are refused.
`longshort-server describe DIR` reads a `config.json` and prints what the model costs.
)";

std::string ToMarkdown(const ConfigSection& section) {
  std::string text = absl::StrCat("\n## ", std::string(section.title), "\n\n", std::string(section.text), "\n\n| ",
                                  std::string(section.first_column), " | values | meaning |\n|---|---|---|\n");
  for (const FieldDescription& field : section.rows) {
    absl::StrAppend(&text, "| `", std::string(field.name), "` | ", field.values, " | ", std::string(field.help),
                    " |\n");
  }
  return text;
}

}  // namespace

std::string ConfigPage() {
  std::string page(kIntroduction);
  for (const FamilyConfig& family : FamilyConfigs()) {
    for (const ConfigSection& section : family.sections) page += ToMarkdown(section);
  }
  return page + ToMarkdown({"Preprocessing of images", "field", "The object `preprocessing` of classifiers of images.",
                            ImagePreprocessingFields()});
}

}  // namespace longshort::models
