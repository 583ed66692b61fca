#include "models/train/training_run.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "models/device/library.h"
#include "models/train/labelled_data.h"
#include "models/train/model_writer.h"

namespace longshort::models {

RunSettings SettingsOf(const RunOptions& options) {
  RunSettings settings = SettingsOf(options.loop.optimizer);
  settings["--batch"] = absl::StrCat(options.batch);
  settings[kShardsSetting] = absl::StrCat(options.shards);
  settings["--seed"] = absl::StrCat(options.seed);
  if (options.official_weights) settings["--initial-weights"] = "official";
  settings["--bfloat16-products"] = options.bfloat16_products ? "true" : "false";
  return settings;
}

absl::Status CheckOutput(const RunOptions& options) {
  LS_RETURN_IF_ERROR(CheckCheckpoint(options.loop));
  return CheckModelDirectory(options.output_directory, options.loop.checkpoint_path);
}

absl::Status TrainModel(const RunOptions& options, const ModelRun& run) {
  if (!options.loop.replace) LS_RETURN_IF_ERROR(CheckReplacesOwnModel(options.output_directory, run.settings));
  if (!CanMakeThreads(static_cast<int>(options.shards) - 1)) {
    return absl::ResourceExhaustedError(absl::StrCat("--shards=", options.shards, " needs ", options.shards - 1,
                                                     " more threads, which the system does not allow; give fewer"));
  }
  absl::FPrintF(stderr, "%s", run.data_report);
  try {
    const OneThread one_thread;  // of each shard
    const KeptMemory memory;     // each step needs what the last one has freed
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingTask> task, run.make_task());
    LS_ASSIGN_OR_RETURN(const TrainingResult result, RunTrainingLoop(options.loop, run.settings, run.units, *task));
    if (!result.done) return absl::OkStatus();
    LS_RETURN_IF_ERROR(run.write(task->result(), MetadataOfRun(run.settings)));
    absl::PrintF(
        "%s%s", result.held_out.details,
        NextSteps(options.output_directory, result.held_out.figures, program_invocation_name, run.input, run.call));
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return LibraryError("in training", error);
  }
}

namespace {

namespace fs = std::filesystem;

// The repository of models that do not lie in one.
constexpr char kRepository[] = "my_models";

// The program of this name that lies beside `program`, or else the one that the shell finds.
std::string Sibling(const fs::path& program, const std::string& name) {
  std::error_code unknown;
  const fs::path sibling = program.parent_path() / name;
  return program.has_parent_path() && fs::exists(sibling, unknown) ? ShellWord(sibling.string()) : name;
}

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string InputCommand(std::string_view text) {
  constexpr size_t kLongest = 100;
  text = text.substr(0, std::find_if(text.begin(), text.end(), absl::ascii_iscntrl) - text.begin());
  if (text.size() > kLongest) text = Beginning(text, std::min(text.rfind(' ', kLongest), kLongest));
  return text.empty() ? "" : absl::StrCat("printf %s ", ShellWord(std::string(text)));
}

std::string NextSteps(const std::string& directory, const std::string& held_out, const std::string& program,
                      const std::string& input, const std::string& call) {
  std::error_code unknown;
  fs::path place = fs::weakly_canonical(fs::absolute(directory, unknown), unknown);
  if (!place.has_filename()) place = place.parent_path();
  // As the user wrote it, if that has the three parts.
  const fs::path given = fs::path(directory).has_filename() ? fs::path(directory) : fs::path(directory).parent_path();
  fs::path repository = given.parent_path().parent_path(), model = place.parent_path();
  if (repository.empty()) repository = given.parent_path().has_filename() ? "." : model.parent_path();
  std::string text = absl::StrCat("the model is in ", directory, held_out.empty() ? "" : ": held-out ", held_out, "\n");
  if (given.filename().string().find_first_not_of("0123456789") != std::string::npos) {
    repository = kRepository;
    model = repository / place.filename();
    absl::StrAppend(&text, "move it:   mkdir -p ", ShellWord(model.string()), " && mv ", ShellWord(directory), " ",
                    ShellWord((model / "1").string()), "\n");
  }
  return absl::StrCat(text, "serve it:  ", Sibling(program, "longshort-server"),
                      " --model-repository=", ShellWord(repository.string()),
                      "\ncall it:   ", input.empty() ? "" : absl::StrCat(input, " | "), Sibling(program, "longshort"),
                      " --model=", ShellWord(model.filename().string()), " ", call, "\n");
}

}  // namespace longshort::models
