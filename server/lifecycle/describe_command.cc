#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/families/family.h"
#include "server/lifecycle/run.h"

namespace longshort::server {
namespace {

constexpr size_t kConfigLimitBytes = 1 << 20, kLabelsLimitBytes = size_t{64} << 20;

std::string PresetNames() {
  return absl::StrJoin(models::Presets(), "\n  ",
                       [](std::string* text, const models::Preset& preset) { text->append(preset.name); });
}

std::string Help(const OptionTable& table) {
  return absl::StrCat(
      "longshort-server describe: prints the costs of a model, computed from its config.json.\n\n"
      "  longshort-server describe MODEL_OR_CONFIG\n\n"
      "MODEL_OR_CONFIG is a model directory, a config.json, or one of the published models:\n\n  ",
      PresetNames(),
      "\n\n"
      "For each stage, it prints tokens, width, parameters, and multiply-adds. The multiply-adds are those of one "
      "image,\n"
      "of one item's document or documents, or of one token of a language model. For a classifier's directory with\n"
      "labels.txt, it also prints the first classes.\n\n"
      "Options (--name=value or --name value):\n",
      table.Help());
}

absl::StatusOr<models::ModelDescription> DescribeModel(const std::string& model) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(model, error);
  if (!std::filesystem::exists(status)) {
    const std::string_view preset = models::FindPreset(model);
    if (!preset.empty()) return models::DescribeConfig(preset, model);
    return absl::NotFoundError(
        absl::StrCat(model, ": not a file, a directory or one of the published models: ",
                     absl::StrJoin(models::Presets(), ", ",
                                   [](std::string* text, const models::Preset& known) { text->append(known.name); })));
  }
  const bool is_directory = std::filesystem::is_directory(status);
  const std::string path = is_directory ? model + "/config.json" : model;
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kConfigLimitBytes));
  LS_ASSIGN_OR_RETURN(models::ModelDescription description, models::DescribeConfig(text, path));
  if (!is_directory) return description;
  const std::string labels = model + "/labels.txt";
  LS_ASSIGN_OR_RETURN(const std::optional<std::string> names, ReadOptionalTextFile(labels, kLabelsLimitBytes));
  if (names.has_value()) LS_RETURN_IF_ERROR(models::NameClasses(*names, labels, description));
  return description;
}

}  // namespace

absl::StatusOr<std::string> DescribeCommand(const std::vector<std::string>& arguments) {
  bool fields = false, help = false;
  OptionTable table;
  table.AddSwitch("fields", "Print the fields of config.json for every architecture, as in docs/config.md, and exit.",
                  &fields);
  table.AddSwitch("help", "Print this and exit.", &help);
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> models, table.ParseAmongOthers(arguments));
  if (help) return Help(table);
  if (fields && models.empty()) return models::ConfigPage();
  if (fields || models.size() != 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "describe takes one model, or --fields and no model; models given: %d (longshort-server describe --help)",
        models.size()));
  }
  LS_ASSIGN_OR_RETURN(const models::ModelDescription description, DescribeModel(models.front()));
  return models::ToText(description);
}

int RunDescribe(const std::vector<std::string>& arguments) {
  const absl::StatusOr<std::string> text = DescribeCommand(arguments);
  if (!text.ok()) {
    absl::FPrintF(stderr, "longshort-server: %s\n", text.status().message());
    return 1;
  }
  return std::fputs(text->c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

}  // namespace longshort::server
