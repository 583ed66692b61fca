// Times of a classifier's batches.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"

namespace longshort {

struct ClassifierWork {
  std::string model;  // its directory
  std::string precision = "fp32";
  int64_t items = 32;
  int64_t tokens = 0;  // of each document; 0: as many as the model takes
  int64_t runs = 30;
  double seconds = 0;  // more runs, until they have taken this long, and the warm-up a quarter of it
  int64_t warm_up_runs = 5;
  bool in_turns = false;  // the runs are those of RunInTurns
};

// {"batch_seconds": [...], "batch_flops": ..., "logits": [...], "resident_peak": ..., "used_memory": ...}
//   batch_seconds  of Classifier::Classify: from items in the host's memory to logits there
//   batch_flops    of its products and convolutions, 2 for each multiply-add
//   logits         of the batch's last item
//   resident_peak  how far the batches raised the process's resident memory
// Item n has the values ((7919 i + 104729 n) mod 1021) / 510 - 1, or the tokens 1 + (7919 i + 104729 n) mod (V - 1);
// of two documents, the items 2 n and 2 n + 1.
// Errors: those of the model; INVALID_ARGUMENT if it is no classifier.
absl::StatusOr<nlohmann::json> MeasureClassifier(const ClassifierWork& work, const GoldenDevice& device);

}  // namespace longshort
