// Hugging Face's tokenizer.json of a byte-level BPE, as RoBERTa and GPT-2 have it, parsed strictly.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/byte_pair_merges.h"

namespace longshort::models {

struct BpeFile {
  // The bytes of each id; empty for ids without a symbol. As many as the model has embedding rows.
  std::vector<std::string> pieces;
  std::vector<int32_t> symbols;       // the ids of symbols that stand for bytes, without added tokens
  std::array<int32_t, 256> byte_ids;  // the id of each byte; -1: none
  std::optional<int32_t> unknown_id;  // of bytes without an id; such bytes are dropped if it is absent
  bool fuse_unknown = false;          // unknown bytes that follow each other are one token
  bool ignore_merges = false;         // a word that is a symbol is not merged
  BytePairMerges merges;
  // Tokens that are found in the text. Those of the second list are found in what the first leaves.
  std::vector<AddedToken> added;
  std::vector<AddedToken> normalized_added;
  bool add_prefix_space = false;  // a space is added to text that begins without one
  int32_t begin_id = 0;           // <s>
  int32_t end_id = 0;             // </s>
  // Whether offsets leave out spaces, and whether a single space at the beginning counts as added.
  bool trim_offsets = false;
  bool trim_added_space = false;
};

// Parses tokenizer.json for a model with `vocabulary_size` embedding rows. `name` is the file's name in errors.
//
// What it must have: model BPE without dropout, byte_fallback, prefixes and suffixes; no normalizer, or a Sequence of
// none; the pre-tokenizer ByteLevel with its pattern; a post-processor that makes <s> A </s>, and <s> A </s></s> B </s>
// of a pair: RobertaProcessing, or TemplateProcessing, alone or behind ByteLevel. Its padding is ignored, and its
// truncation except its direction, which must be right: the model's limit holds, and there is no padding.
//
// The converter has the same rules (longshort_convert/tokenizer_json.py). tests/models/tokenizer/files hold both to
// each other.
//
// Errors: INVALID_ARGUMENT naming the file, the field, and what it must be; for a file that is not JSON, that has more
// than 2^22 elements, or that needs something else than the above.
absl::StatusOr<BpeFile> ParseTokenizerJson(std::string_view text, const std::string& name, int64_t vocabulary_size);

}  // namespace longshort::models
