// What a front tells of a model that is served.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/registry/served_model.h"
#include "server/calls/request_limits.h"

namespace longshort {

// What the server takes for one model; 0 where the model takes nothing of the kind.
struct ModelLimits {
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;
  int64_t completions = 0;
  int64_t texts = 0;
  int64_t images = 0;
  int64_t image_bytes = 0;
  int64_t image_pixels = 0;
  int64_t window = 0;  // documents of a stream
  int64_t message_bytes = 0;
};

// Shows the model: valid as long as it. What only one kind of model has stands in its info.
struct ModelDescription {
  const ServedModel& served;
  std::string_view architecture = {};
  std::string_view fingerprint = {};
  std::string_view precision = {};
  int64_t parameters = 0;
  int64_t vocabulary_size = 0;      // 0 for a model of images
  std::string_view tokenizer = {};  // "none" for a model that takes ids only; empty for one of images
  ModelLimits limits = {};
};

ModelDescription DescribeModel(const ServedModel& served, const RequestLimits& limits);

}  // namespace longshort
