// What the server takes in one call. Requests beyond are INVALID_ARGUMENT; GetModel tells the limits.
#pragma once

#include <cstdint>

#include "core/registry/served_model.h"
#include "models/images/image_header.h"

namespace longshort::server {

struct RequestLimits {
  // Tokens of one prompt or document; for several completions, tokens of all their prompts together.
  int64_t prompt_tokens = 0;
  // Tokens of one completion.
  int64_t generate_tokens = 0;

  int64_t completions = 16;
  // Documents of one ScoreText call.
  int64_t inputs = 64;
  // Documents of one ScoreTexts stream that are in work or answered and not written yet.
  int64_t stream_documents = 64;
  // Bytes of the answers about these documents: the stream reads on while they are fewer.
  int64_t stream_answer_bytes = int64_t{4} << 20;
  // Images of one ClassifyImage call.
  int64_t images = 64;
  // Bytes of one message.
  int64_t message_bytes = 0;
  // Bytes of one encoded image.
  int64_t image_bytes = models::ImageLimits().max_bytes;
  // Width times height of one image.
  int64_t image_pixels = models::ImageLimits().max_pixels;
  // Bytes of the classes and logits of one answer, for the same 4 MiB.
  int64_t class_bytes = int64_t{3} << 20;
  // Likeliest tokens named at one place.
  int64_t top_alternatives = 20;
  int64_t stop_strings = 16;
  int64_t stop_string_bytes = 256;
  int64_t logit_biases = 1024;
  // Tokens described one by one in an answer (each alternative counts too) or echoed: an answer stays below the 4 MiB
  // that gRPC clients take by default.
  int64_t described_tokens = int64_t{1} << 17;
  // Tokens to generate for one answer that is not streamed, over all its completions: for the same 4 MiB, with up to
  // four bytes of text and four raw ones for each.
  int64_t answer_tokens = int64_t{1} << 18;
};

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

ModelLimits LimitsOf(const core::ServedModel& served, const RequestLimits& limits);

}  // namespace longshort::server
