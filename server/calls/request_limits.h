// The limits of one call. A request beyond a limit is INVALID_ARGUMENT; GetModel reports the limits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/registry/served_model.h"
#include "models/images/image_header.h"

namespace longshort::server {

struct RequestLimits {
  // Tokens of one prompt or document; with several completions, of all their prompts together.
  int64_t prompt_tokens = 0;
  // Tokens of one completion.
  int64_t generate_tokens = 0;

  int64_t completions = 16;
  // Texts of one call (--max-inputs).
  int64_t inputs = 2048;
  // Documents of one ScoreTexts stream that are in work, or whose answers are not written yet.
  int64_t stream_documents = 64;
  // Bytes of these documents' answers. The stream reads no further document while they reach the limit.
  int64_t stream_answer_bytes = int64_t{4} << 20;
  // Images of one ClassifyImage call.
  int64_t images = 64;
  // Bytes of one message.
  int64_t message_bytes = 0;
  // Bytes of one encoded image.
  int64_t image_bytes = models::ImageLimits().max_bytes;
  // Width times height of one image.
  int64_t image_pixels = models::ImageLimits().max_pixels;
  // Most likely tokens listed at one position.
  int64_t top_alternatives = 20;
  int64_t stop_strings = 16;
  int64_t stop_string_bytes = 256;
  int64_t logit_biases = 1024;
  // Tokens described individually in an answer (each alternative counts), or echoed. Keeps an answer below the 4 MiB
  // that gRPC clients accept by default.
  int64_t described_tokens = int64_t{1} << 17;
  // Tokens to generate for one unary answer, over all completions. Keeps the answer below 4 MiB with up to four bytes
  // of text and four raw bytes for each token.
  int64_t answer_tokens = int64_t{1} << 18;
};

// The limits for one model; 0 if the model does not take such input.
struct ModelLimits {
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;
  int64_t completions = 0;
  int64_t texts = 0;
  int64_t images = 0;
  int64_t image_bytes = 0;
  int64_t image_pixels = 0;
  int64_t window = 0;  // documents in flight on a stream
  int64_t message_bytes = 0;
};

inline ModelLimits LimitsOf(const core::ServedModel& served, const RequestLimits& limits) {
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
