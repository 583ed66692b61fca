// Trains a byte language model on one text: truncated back-propagation over segments, with memory carried over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/train/training_loop.h"
#include "models/weights/language_model_config.h"

namespace longshort::models {

// commands.cc defines the ranges of the numbers.
struct LanguageModelTrainerOptions {
  LanguageModelConfig config;  // vocabulary_size is set from the vocabulary
  LoopOptions loop;
  int64_t batch = 8;                // parallel streams
  int64_t tokens_per_stream = 512;  // per step; a multiple of L
  int64_t shards = 1;  // threads that share a batch's streams, one core each; affects the result's rounding only
  uint64_t seed = 1;
  double held_out_fraction = 0.05;  // of the text, at its end
  bool bfloat16_products = false;
  // Model directory of a byte language model with whose weights the run begins; empty: random weights. Its config and
  // vocabulary are the new model's.
  std::string from;
  std::string output_directory;  // the model directory
};

// Trains on `text`, and writes the model directory unless the run is stopped before its last step.
// Errors: INVALID_ARGUMENT for options that contradict each other; those of RunTrainingLoop and of the file system.
absl::Status TrainLanguageModel(const LanguageModelTrainerOptions& options, const std::string& text);

// Writes config.json, model.safetensors (float16) and vocabulary.txt to `directory`, which is created if needed.
absl::Status WriteLanguageModel(const std::string& directory, const LanguageModelConfig& config,
                                const std::vector<NamedParameter>& parameters, const std::string& vocabulary,
                                const std::map<std::string, std::string>& metadata = {});

}  // namespace longshort::models
