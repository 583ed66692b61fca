// Converts text to token ids and back, with the rules of the model's training data.
//
// All classes are immutable, hence thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::models {

// The first ids of a document, without spare capacity, and the number of ids of the whole document.
struct DocumentBeginning {
  std::vector<int32_t> ids;
  int64_t tokens = 0;
};

// Where a token is in the text: its bytes, and the characters that these bytes belong to. Each maximal part of the text
// that is not UTF-8 counts as one character, U+FFFD.
struct TokenSpan {
  int64_t byte_begin = 0;
  int64_t byte_end = 0;
  int64_t character_begin = 0;
  int64_t character_end = 0;
  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

// Converts text to ids of a model's vocabulary.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Returns the first `limit` ids, or all if there are fewer. It never keeps more ids in memory.
  // Errors: INVALID_ARGUMENT naming the part that cannot be tokenised, and its byte offset.
  virtual absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t limit) const = 0;
  // Returns all ids.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const {
    absl::StatusOr<DocumentBeginning> all = EncodeBeginning(text, std::numeric_limits<int64_t>::max());
    if (!all.ok()) return all.status();
    return std::move(all->ids);
  }
  // Returns the place of each id of Encode(text).
  // Errors: those of EncodeBeginning.
  virtual absl::StatusOr<std::vector<TokenSpan>> Spans(std::string_view text) const = 0;
  // The bytes of an id; empty for ids without text.
  virtual std::string_view Decode(int32_t id) const = 0;
};

// The tokenizer of a language model, which also converts ids to text.
//
// Ids 0..3 are fairseq's <s>, <pad>, </s>, <unk>. vocabulary.txt (the format of dict.txt: one "symbol count" per line)
// defines the ids from 4 on. In a byte vocabulary a symbol is the decimal number of a byte. In a character vocabulary
// it is the character itself, with "_" for the space. The newline has id 2 in both.
class Tokenizer : public TextEncoder {
 public:
  enum class Unit { kByte, kCharacter };

  // The unit of a token, as in "bits per byte" and "bits per character".
  virtual Unit unit() const = 0;
  // V, the number of rows of the model's embedding, including made-up words.
  virtual int64_t vocabulary_size() const = 0;
  // Whether the model was trained to produce this id: all except 0, 1, 3 and made-up words. Only such ids are sampled.
  virtual bool IsProducible(int32_t id) const = 0;
};

}  // namespace longshort::models
