// Trains a byte language model on one text, by truncated back-propagation over segments with memory carried on.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "models/train/optimizer.h"
#include "models/weights/language_model_config.h"

namespace longshort {

struct TrainerOptions {
  LanguageModelConfig config;  // vocabulary_size is set from the vocabulary
  OptimizerOptions optimizer;
  int64_t batch = 8;                // parallel streams
  int64_t tokens_per_stream = 512;  // per step; a multiple of L
  int64_t shards = 1;  // threads that share a batch's streams, one core each; part of the result's rounding
  uint64_t seed = 1;
  double held_out_fraction = 0.05;  // the text's end
  int64_t held_out_interval = 500;  // steps between looks at the held-out text
  int64_t checkpoint_interval = 100;
  bool bfloat16_products = false;
  int64_t stop_after_steps = 0;  // stop at this step with a checkpoint, as a run in parts does; 0 goes to the end
  std::string checkpoint_path;   // resumed from if it is there
  std::string output_directory;  // the model directory
};

// Trains on `text` and writes the model directory. Goes on from the checkpoint if there is one: the run is then the
// same as one never stopped. Errors: INVALID_ARGUMENT for options that do not fit together, the file system's.
absl::Status Train(const TrainerOptions& options, const std::string& text);

}  // namespace longshort
