// The options that the commands of longshort-train share.
#pragma once

#include <string>

#include "command_line/option_table.h"
#include "models/train/classifier_trainer.h"
#include "models/train/training_loop.h"

namespace longshort {

// --out and --checkpoint.
void AddOutputOptions(OptionTable& table, std::string& output_directory, LoopOptions& loop);

// --steps, --learning-rate and the like.
void AddLoopOptions(OptionTable& table, LoopOptions& loop);

// What the classifiers' commands share beside those.
void AddClassifierOptions(OptionTable& table, ClassifierTrainerOptions& options);

// What is the same in the defaults of both classifiers.
ClassifierTrainerOptions DefaultClassifierOptions();

}  // namespace longshort
