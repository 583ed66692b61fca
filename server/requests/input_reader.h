// An Input of the contract (text, bytes or ids) as token ids of a model.
//
// Thread: free functions without state; they run on gRPC's threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "longshort/v1/types.pb.h"

namespace longshort {

// How a model's ids come from text. Valid as long as the model.
struct TextEncoder {
  int64_t vocabulary_size = 0;
  // As DocumentTokenizer::EncodeBeginning. Null for a model that takes ids only.
  std::function<absl::StatusOr<DocumentBeginning>(const std::string& text, int64_t most)> encode;
};

TextEncoder EncoderOf(const ServedLanguageModel& model);
TextEncoder EncoderOf(const ServedClassifier& model);

// The tokens of `input`, 1 to `most_tokens` of them, each in [0, V).
// `field` names the input in messages ("prompt", "inputs[3]").
// Errors: INVALID_ARGUMENT if it is empty, too long, has an id outside the vocabulary (with its index) or a byte or
// character outside the vocabulary (with its offset), or is text for a model that takes ids only.
absl::StatusOr<std::vector<int32_t>> ReadInput(const v1::Input& input, const std::string& field,
                                               const TextEncoder& encoder, int64_t most_tokens);
// The first `most_tokens` tokens of `input`, or all of them, and how many there are: at least one.
// Errors: as ReadInput, but for an input that is too long.
absl::StatusOr<DocumentBeginning> ReadBeginning(const v1::Input& input, const std::string& field,
                                                const TextEncoder& encoder, int64_t most_tokens);

// The bytes that the tokens stand for; empty for a model that takes ids only.
std::string DecodeTokens(const std::vector<int32_t>& tokens, const ServedLanguageModel& model);

}  // namespace longshort
