// Trains a classifier on labelled examples. Each step takes one batch.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "models/train/trainable_classifier.h"
#include "models/train/training_loop.h"

namespace longshort::models {

// commands.cc defines the ranges of the numbers.
struct ClassifierTrainerOptions {
  LoopOptions loop;
  int64_t batch = 32;  // examples of a step
  int64_t group = 8;   // examples that the model runs at once; batch normalisation uses their statistics
  int64_t shards = 1;  // threads that share a batch's groups, one core each; affects the result's rounding only
  uint64_t seed = 1;
  double label_smoothing = 0;  // fraction of a target's probability that is spread over all classes
  // Decay per step of a running average of the weights (smaller in the first steps). The average is evaluated and
  // written instead of the weights. 0: the weights are.
  double average_decay = 0;
  bool bfloat16_products = false;  // matrix products and convolutions in bfloat16, in training only
  std::string output_directory;    // the model directory
};

// Trains, and writes the model directory unless the run is stopped before its last step.
// Errors: INVALID_ARGUMENT for options that contradict each other; INTERNAL if LibTorch fails; those of RunTrainingLoop
// and of the file system.
absl::Status TrainClassifier(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier);

}  // namespace longshort::models
