// Trains a classifier on labelled examples, in steps of one batch each.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "models/train/trainable_classifier.h"
#include "models/train/training_loop.h"

namespace longshort::models {

// Numbers are in the ranges that the rows of commands.cc allow.
struct ClassifierTrainerOptions {
  LoopOptions loop;
  int64_t batch = 32;  // examples of a step
  int64_t group = 8;   // examples that go through the model at once; batch normalisation sees these together
  int64_t shards = 1;  // threads that share a batch's groups, one core each; part of the result's rounding only
  uint64_t seed = 1;
  double label_smoothing = 0;  // this much of a target's probability is spread over all classes
  // What is measured and written is the running average of the weights, which keeps this much of itself at each step
  // (less in the first steps); 0: the weights themselves.
  double average_decay = 0;
  bool bfloat16_products = false;  // matrix products and convolutions in bfloat16, in training only
  std::string output_directory;    // the model directory
};

// Trains and writes the model directory, unless stopped before. Errors: INVALID_ARGUMENT for options that do not fit
// together, those of RunTrainingLoop, the file system's; INTERNAL if LibTorch fails.
absl::Status TrainClassifier(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier);

}  // namespace longshort::models
