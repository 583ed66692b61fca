// Which classes a model gives to images: what is asked, and what is answered.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/classification_request.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// What an answer about one item names. 0 takes the default.
struct ClassOptions {
  int64_t top_k = 0;
  bool all_logits = false;
  bool all_probabilities = false;
};

struct ClassProbability {
  int32_t index = 0;
  std::string_view label;  // the model's; empty for one without labels
  float probability = 0;   // softmax over all classes
};

// What a classifier makes of one item.
struct Classification {
  std::vector<ClassProbability> classes;  // likeliest first
  std::vector<float> logits;              // [classes] if asked for
  std::vector<float> probabilities;       // [classes] if asked for
  core::ClassificationTimings timings;
};

struct ClassifyCall {
  ModelReference model = {};
  std::vector<ImageInput> images = {};
  ClassOptions options = {};
};

struct ClassifyResult {
  // Of each image, in their order; an error concerns that image only.
  std::vector<absl::StatusOr<Classification>> images;
  ModelReference model = {};
  // Whose labels are shown.
  std::shared_ptr<const core::ServedClassifier> classifier;
};

}  // namespace longshort::server
