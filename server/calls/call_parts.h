// Parts that calls of all kinds share: the model reference, text and image inputs, and usage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "absl/types/span.h"
#include "models/classifier.h"

namespace longshort::server {

struct ModelReference {
  // May be empty if exactly one model is served.
  std::string name;
  // 0: the newest version.
  int64_t version = 0;
};

// Tokens, or data that is tokenized. A view: the creator keeps the data alive until the call that contains the view has
// been read.
struct TextInput {
  enum class Kind {
    kUnset,
    kText,   // UTF-8
    kBytes,  // arbitrary bytes
    kIds,    // token ids
  };

  Kind kind = Kind::kUnset;
  std::string_view text = {};          // kText and kBytes
  absl::Span<const int32_t> ids = {};  // kIds
};

// An image as received.
struct ImageInput {
  // An encoded file, or raw pixels; monostate if the client sent neither. Views of data that `owner` holds.
  std::variant<std::monostate, std::string_view, models::RawImage> content;
  // Released once the image is decoded. Large images should not share an owner.
  std::shared_ptr<const void> owner;
  // Memory held until then, in bytes.
  int64_t bytes = 0;
};

// How a document was tokenized.
struct DocumentReading {
  int64_t token_count = 0;
  bool truncated = false;
};

struct Usage {
  int64_t prompt_tokens = 0;     // tokens of prompts and documents, cached or not
  int64_t generated_tokens = 0;  // sampled tokens
  int64_t cached_tokens = 0;     // tokens found in the cache, of prompts and of the sessions they continue
};

}  // namespace longshort::server
