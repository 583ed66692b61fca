// The options that the commands of longshort-train share.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/option_table.h"
#include "models/train/classifier_trainer.h"
#include "models/train/training_loop.h"

namespace longshort {

// --out and --checkpoint.
void AddOutputOptions(OptionTable& table, std::string& output_directory, LoopOptions& loop);

// --steps, --learning-rate and the like.
void AddLoopOptions(OptionTable& table, LoopOptions& loop);

// What the classifiers' commands share beside those.
void AddClassifierOptions(OptionTable& table, ClassifierTrainerOptions& options);

// --help, in a section of its own at the end.
void AddHelpOption(OptionTable& table, bool& help);

// What is the same in the defaults of both classifiers.
ClassifierTrainerOptions DefaultClassifierOptions();

// Checks that the files and the folder that every classifier's training needs are named. Errors: INVALID_ARGUMENT.
absl::Status CheckClassifierPaths(const std::string& config, const std::string& train, const std::string& held_out,
                                  const std::string& output_directory);

}  // namespace longshort
