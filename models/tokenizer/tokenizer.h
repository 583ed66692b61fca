// Text to token ids and back, as the model's training data was prepared.
//
// Ids 0..3 are fairseq's <s>, <pad>, </s>, <unk>; vocabulary.txt (dict.txt form: one "symbol count" a line) gives ids
// from 4 on. In the byte vocabulary a symbol is the decimal number of a byte, in the character vocabulary it is the
// character itself, with "_" for the space. A newline is id 2 in both.
//
// Thread: immutable after Load, so any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort {

class Tokenizer {
 public:
  enum class Unit { kByte, kCharacter };

  virtual ~Tokenizer() = default;

  // What one token stands for; "bits per byte" or "bits per character".
  virtual Unit unit() const = 0;
  // V, made-up words included: the rows of the model's embedding.
  virtual int64_t vocabulary_size() const = 0;
  // Whether the model was trained to produce this id: not 0, 1, 3 nor a made-up word. Only such ids are sampled.
  virtual bool IsProducible(int32_t id) const = 0;

  // Errors: INVALID_ARGUMENT naming the byte or character outside the vocabulary, and its byte offset.
  virtual absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const = 0;
  // The bytes that one id stands for; empty for ids that stand for none (0, 1, 3, made-up words).
  virtual std::string_view Decode(int32_t id) const = 0;
};

}  // namespace longshort
