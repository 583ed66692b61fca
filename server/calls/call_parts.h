// What calls of all kinds have: a model's name, texts, images; and what they took.
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
  // May be empty where exactly one model is served.
  std::string name;
  // 0 takes the newest.
  int64_t version = 0;
};

// Tokens, or what becomes tokens. A view: its creator keeps the viewed data until the call that contains it has been
// read.
struct TextInput {
  enum class Kind {
    kUnset,
    kText,   // UTF-8
    kBytes,  // of any value
    kIds,
  };

  Kind kind = Kind::kUnset;
  std::string_view text = {};          // of kText and kBytes
  absl::Span<const int32_t> ids = {};  // of kIds
};

// An image as it came.
struct ImageInput {
  // A file, or pixels; nothing if the client gave neither. Views of what `owner` has.
  std::variant<std::monostate, std::string_view, models::RawImage> content;
  // Held until the image is an item, and no longer: several images should not share one if they are large.
  std::shared_ptr<const void> owner;
  // Memory that it takes meanwhile.
  int64_t bytes = 0;
};

struct Usage {
  int64_t prompt_tokens = 0;     // of prompts and documents, found in the cache or not
  int64_t generated_tokens = 0;  // sampled
  int64_t cached_tokens = 0;     // found in the cache, of prompts and of the sessions before them
};

}  // namespace longshort::server
