// Trains a classifier on labelled examples. Each step takes one batch.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/train/trainable_classifier.h"
#include "models/train/training_run.h"

namespace longshort::models {

struct ClassifierTrainerOptions : RunOptions {
  ClassifierTrainerOptions() { batch = 32; }

  int64_t group = 8;           // examples that the model runs at once; batch normalisation uses their statistics
  double label_smoothing = 0;  // fraction of a target's probability that is spread over all classes
  // Decay per step of a running average of the weights (smaller in the first steps). The average is evaluated and
  // written instead of the weights. 0: the weights are.
  double average_decay = 0;
};

// Trains, and writes the model directory unless the run is stopped before its last step.
// Errors: INVALID_ARGUMENT for options that contradict each other; those of TrainModel and of the file system.
absl::Status TrainClassifier(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier);

}  // namespace longshort::models
