// The tokenizers of models trained with fairseq: bytes (enwik8) or characters (text8).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// Parses vocabulary.txt for a model with `vocabulary_size` embedding rows. `text` is its content, and `name` its name
// in errors.
//
// Unit::kByte: a symbol is the decimal number of a byte. Unit::kCharacter: a symbol is one UTF-8 character, and "_"
// stands for the space, so that text with a literal "_" cannot be encoded. The newline has id 2, so vocabularies must
// not contain it. Made-up words have ids but no text. Neither have the ids from 4 + lines to `vocabulary_size` - 1,
// which some vocabularies omit.
//
// Errors: INVALID_ARGUMENT naming the file and the line, or both sizes if there are more symbols than embedding rows.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFairseqTokenizer(Tokenizer::Unit unit, std::string_view text,
                                                                const std::string& name, int64_t vocabulary_size);

}  // namespace longshort::models
