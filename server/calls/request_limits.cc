#include "server/calls/request_limits.h"

#include <algorithm>

namespace longshort::server {

ModelLimits LimitsOf(const core::ServedModel& served, const RequestLimits& limits) {
  ModelLimits of_model = {.message_bytes = limits.message_bytes};
  const int64_t texts = limits.inputs;
  if (served.language_model() != nullptr) {
    of_model.prompt_tokens = limits.prompt_tokens;
    of_model.max_tokens = limits.generate_tokens;
    of_model.completions = std::min(limits.completions, served.max_items());
    of_model.texts = texts;
    of_model.window = limits.stream_documents;
  } else if (served.classifier()->info.input == models::ClassifierInput::kText) {
    of_model.texts = texts;
    of_model.window = limits.stream_documents;
  } else {
    of_model.images = std::min(limits.images, served.max_items());
    of_model.image_bytes = limits.image_bytes;
    of_model.image_pixels = limits.image_pixels;
  }
  return of_model;
}

}  // namespace longshort::server
