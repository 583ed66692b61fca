// Text to token ids and back, as the model's training data was prepared.
//
// Thread: immutable, so any thread may use them.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::models {

// The first ids of a document, without spare capacity, and how many the whole has.
struct DocumentBeginning {
  std::vector<int32_t> ids;
  int64_t tokens = 0;
};

// Text to the ids of a model's vocabulary.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // The first `most` ids, or all if there are fewer: of a longer text no more is ever held.
  // Errors: INVALID_ARGUMENT naming what cannot be tokenised, and its byte offset.
  virtual absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t most) const = 0;
  // All ids.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const {
    absl::StatusOr<DocumentBeginning> all = EncodeBeginning(text, std::numeric_limits<int64_t>::max());
    if (!all.ok()) return all.status();
    return std::move(all->ids);
  }
};

// A language model's: ids to text, too.
//
// Ids 0..3 are fairseq's <s>, <pad>, </s>, <unk>; vocabulary.txt (dict.txt form: one "symbol count" a line) gives ids
// from 4 on. In the byte vocabulary a symbol is the decimal number of a byte, in the character vocabulary it is the
// character itself, with "_" for the space. A newline is id 2 in both.
class Tokenizer : public TextEncoder {
 public:
  enum class Unit { kByte, kCharacter };

  // What one token stands for; "bits per byte" or "bits per character".
  virtual Unit unit() const = 0;
  // V, made-up words included: the rows of the model's embedding.
  virtual int64_t vocabulary_size() const = 0;
  // Whether the model was trained to produce this id: not 0, 1, 3 nor a made-up word. Only such ids are sampled.
  virtual bool IsProducible(int32_t id) const = 0;

  // The bytes that one id stands for; empty for ids that stand for none (0, 1, 3, made-up words).
  virtual std::string_view Decode(int32_t id) const = 0;
};

}  // namespace longshort::models
