// vocabulary.txt: fairseq's dict.txt, one "symbol count" a line; the symbol of line n (from 0) has id 4 + n.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::models {

// The symbols in the order of their ids, from id 4 on. They point into `text`. `name` stands for the file in errors.
// Errors: INVALID_ARGUMENT naming the file and the line (from 1) that is no "symbol count", repeats a symbol, or says
// #fairseq:overwrite.
absl::StatusOr<std::vector<std::string_view>> ParseVocabulary(std::string_view text, const std::string& name);

// A symbol or line as it may stand in an error message: in single quotes, escaped, cut at 60 bytes.
std::string QuoteSymbol(std::string_view symbol);

// Whether fairseq made this symbol up to round the vocabulary's size: "madeupword0000".
bool IsMadeUpWord(std::string_view symbol);

}  // namespace longshort::models
