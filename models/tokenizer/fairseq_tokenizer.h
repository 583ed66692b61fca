// The tokenizers of models trained with fairseq: bytes (enwik8) or characters (text8).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// Reads vocabulary.txt (`text`; `name` stands for the file in errors) for a model with `vocabulary_size` embedding
// rows.
//
// Unit::kByte: a symbol is the decimal number of a byte. Unit::kCharacter: a symbol is one UTF-8 character, where "_"
// stands for the space; text with a literal "_" cannot be encoded then. The newline is id 2, so neither vocabulary may
// list it. Made-up words have ids but no text; so have the ids from 4 + lines up to `vocabulary_size`, which not every
// vocabulary.txt lists.
//
// Errors: INVALID_ARGUMENT naming the file and the line, or both sizes if there are more symbols than embedding rows.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFairseqTokenizer(Tokenizer::Unit unit, std::string_view text,
                                                                const std::string& name, int64_t vocabulary_size);

}  // namespace longshort::models
