// Trains a byte language model on one text, by truncated back-propagation over segments with memory carried on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/train/training_loop.h"
#include "models/weights/language_model_config.h"

namespace longshort::models {

// Numbers are in the ranges that the rows of commands.cc allow.
struct LanguageModelTrainerOptions {
  LanguageModelConfig config;  // vocabulary_size is set from the vocabulary
  LoopOptions loop;
  int64_t batch = 8;                // parallel streams
  int64_t tokens_per_stream = 512;  // per step; a multiple of L
  int64_t shards = 1;  // threads that share a batch's streams, one core each; part of the result's rounding
  uint64_t seed = 1;
  double held_out_fraction = 0.05;  // the text's end
  bool bfloat16_products = false;
  std::string output_directory;  // the model directory
};

// Trains on `text` and writes the model directory, unless stopped before. Errors: INVALID_ARGUMENT for options that do
// not fit together, those of RunTrainingLoop, the file system's.
absl::Status TrainLanguageModel(const LanguageModelTrainerOptions& options, const std::string& text);

// Writes config.json, model.safetensors (float16) and vocabulary.txt into `directory`, made if it is not there.
absl::Status WriteLanguageModel(const std::string& directory, const LanguageModelConfig& config,
                                const std::vector<NamedParameter>& parameters, const std::string& vocabulary);

}  // namespace longshort::models
