// Trains a byte language model on one text: truncated back-propagation over segments, with memory carried over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/families/language_model/language_model_config.h"
#include "models/ops/layers/dropout.h"
#include "models/train/training_run.h"

namespace longshort::models {

// A batch is parallel streams.
struct LanguageModelTrainerOptions : RunOptions {
  LanguageModelConfig config;       // vocabulary_size is set from the vocabulary
  int64_t tokens_per_stream = 512;  // per step; a multiple of L
  double held_out_fraction = 0.05;  // of the text, at its end
  double validation_fraction = 0;   // of the text, before that; it chooses the best weights. 0: the held-out text does
  DropoutRates dropout;             // attention's probabilities have none, as in the official models
  // Model directory of a byte language model with whose weights the run begins; empty: random weights. Its config and
  // vocabulary are the new model's.
  std::string from;
};

// Trains on `text`, and writes the model directory unless the run is stopped before its last step.
// Errors: INVALID_ARGUMENT for options that contradict each other; those of TrainModel and of the file system.
absl::Status TrainLanguageModel(const LanguageModelTrainerOptions& options, const std::string& text);

// Writes config.json, model.safetensors (float16) and vocabulary.txt to `directory`, which is created if needed.
absl::Status WriteLanguageModel(const std::string& directory, const LanguageModelConfig& config,
                                const std::vector<NamedParameter>& parameters, const std::string& vocabulary,
                                const std::map<std::string, std::string>& metadata = {});

}  // namespace longshort::models
