// vocabulary.txt: fairseq's dict.txt, one "symbol count" per line. The symbol on line n (from 0) has id 4 + n.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::models {

// Returns the symbols in the order of their ids, from id 4 on. They point into `text`. `name` is the file's name in
// errors.
// Errors: INVALID_ARGUMENT naming the file and a line (from 1) that is not "symbol count", repeats a symbol, or
// contains #fairseq:overwrite.
absl::StatusOr<std::vector<std::string_view>> ParseVocabulary(std::string_view text, const std::string& name);

// Quotes a symbol or line for an error message: in single quotes, escaped, cut at 60 bytes.
std::string QuoteSymbol(std::string_view symbol);

// Whether fairseq added this symbol to round the size of the vocabulary: "madeupword0000".
bool IsMadeUpWord(std::string_view symbol);

}  // namespace longshort::models
