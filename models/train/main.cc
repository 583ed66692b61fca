// longshort-train: trains models and writes model directories that longshort-server serves.

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/thread_variables.h"
#include "longshort_version.h"
#include "models/train/commands.h"

namespace longshort::models {
namespace {

constexpr const char kHelp[] =
    "longshort-train: trains a model and writes a directory that longshort-server serves.\n\n"
    "Usage: longshort-train [COMMAND] DATA --OPTION=VALUE...\n\n"
    "  language-model    trains a byte language model on one text (default)\n"
    "  text-classifier   trains a classifier of documents\n"
    "  image-classifier  trains a classifier of images\n\n"
    "longshort-train COMMAND --help prints a command's options. longshort-train --version prints the version.\n";

absl::Status Run(std::vector<std::string> arguments) {
  for (const std::string& variable : RemovedThreadVariables()) {
    absl::FPrintF(stderr, "longshort-train: ignores the environment's %s, which would bind or limit its threads\n",
                  variable);
  }
  const std::string first = arguments.empty() ? "--help" : arguments.front();
  if (first == "--help") {
    absl::PrintF("%s", std::string(kHelp));
    return absl::OkStatus();
  }
  if (first == "--version") {
    absl::PrintF("longshort-train %s\n", std::string(kVersion));
    return absl::OkStatus();
  }
  if (std::error_code unknown; first.starts_with('-') || std::filesystem::is_regular_file(first, unknown)) {
    return RunLanguageModelCommand(arguments);
  }
  arguments.erase(arguments.begin());
  if (first == "language-model") return RunLanguageModelCommand(arguments);
  if (first == "text-classifier") return RunTextClassifierCommand(arguments);
  if (first == "image-classifier") return RunImageClassifierCommand(arguments);
  return absl::InvalidArgumentError(absl::StrCat("'", first, "' is neither a command nor a file; see --help"));
}

}  // namespace
}  // namespace longshort::models

int main(int argc, char** argv) {
  const absl::Status status = longshort::models::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "longshort-train: %s\n", std::string(status.message()));
  return 1;
}
