// What generation needs to know of a model's tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/sampling/sampler.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort {

// Immutable, so any thread may use it.
struct Vocabulary {
  // `tokenizer` is null for a model that takes ids only: all its ids may be sampled, and none stands for bytes.
  // Errors: INVALID_ARGUMENT if the tokenizer is for another number of tokens, or leaves none to be sampled.
  static absl::StatusOr<Vocabulary> Make(int64_t size, std::shared_ptr<const Tokenizer> tokenizer);

  // The bytes that a token stands for.
  std::string_view Decode(int32_t token) const { return tokenizer ? tokenizer->Decode(token) : std::string_view(); }

  int64_t size = 0;  // V
  SampleableTokens sampleable;
  std::shared_ptr<const Tokenizer> tokenizer;
};

}  // namespace longshort
