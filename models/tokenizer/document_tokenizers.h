// Long Range Arena's tokenizers of documents. Id 0 is padding.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// Each byte is a token whose id is the byte plus 1. Accepts any text, well-formed or not.
std::unique_ptr<TextEncoder> MakeBytesPlusOneTokenizer();

// Tokenizers of ListOps expressions such as "( ( [MAX 4 ) 3 ) ]". The official code does not store the meaning of ids,
// so a model needs vocabulary.txt, with one symbol per line. The symbol on line n (from 1) has id n. An unknown word
// has the id after the last symbol's.

// The rules that split an expression into words.
enum class ListOpsRules {
  k2020,  // words are runs of letters, digits and "_" (ASCII, and any other character beyond it): "[MAX" is "MAX"
  k2021,  // words are separated by white space; "]" is "X", round brackets are removed: "[MAX" is "[MAX"
};

// Parses vocabulary.txt. `text` is its content, and `name` its name in errors. The model has `vocabulary_size`
// embedding rows; all ids, including 0 and that of unknown words, must be less than that. Errors: INVALID_ARGUMENT
// naming the file and a line that is empty, contains white space or repeats a symbol; or both sizes if there are too
// many symbols or none.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadListOpsTokenizer(ListOpsRules rules, std::string_view text,
                                                                  const std::string& name, int64_t vocabulary_size);

}  // namespace longshort::models
