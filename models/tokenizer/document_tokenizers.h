// Long Range Arena's tokens of documents. Id 0 is left for padding.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// Every byte is a token, its id is the byte plus 1. Takes any text, well-formed or not.
std::unique_ptr<TextEncoder> MakeBytesPlusOneTokenizer();

// Of ListOps expressions such as "( ( [MAX 4 ) 3 ) ]". The official code never stored which id means what: a model
// needs vocabulary.txt, one symbol a line. The symbol of line n (from 1) has id n; a word that is no symbol has the id
// after the last.

// How an expression is cut into words.
enum class ListOpsRules {
  k2020,  // words are runs of letters, digits and "_" (ASCII, and any other character beyond it): "[MAX" is "MAX"
  k2021,  // words stand between white space; "]" is "X", round brackets are dropped: "[MAX" is "[MAX"
};

// Reads vocabulary.txt (`text`; `name` stands for the file in errors) for a model with `vocabulary_size` embedding
// rows: 0, the symbols, and the id of unknown words must be below it.
// Errors: INVALID_ARGUMENT naming the file and the line that is empty, holds white space or repeats a symbol, or both
// sizes if there are too many symbols or none.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadListOpsTokenizer(ListOpsRules rules, std::string_view text,
                                                                  const std::string& name, int64_t vocabulary_size);

}  // namespace longshort::models
