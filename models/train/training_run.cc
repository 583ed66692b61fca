#include "models/train/training_run.h"

#include <cerrno>
#include <cstdio>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/device/kept_memory.h"
#include "models/device/library.h"
#include "models/train/model_writer.h"
#include "models/train/next_steps.h"

namespace longshort::models {

RunSettings SettingsOf(const RunOptions& options) {
  RunSettings settings = SettingsOf(options.loop.optimizer);
  settings["--batch"] = absl::StrCat(options.batch);
  settings["--shards"] = absl::StrCat(options.shards);
  settings["--seed"] = absl::StrCat(options.seed);
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
    const KeptMemory memory;  // each step needs what the last one has freed
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

}  // namespace longshort::models
