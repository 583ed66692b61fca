// GPT-2's words: the matches of
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include <cstddef>
#include <string_view>

#include "models/tokenizer/code_points.h"

namespace longshort::models {

// The end of the word that begins at `text[begin]`. Words follow each other without gaps.
// REQUIRES: `text` is well-formed UTF-8, and `begin` is 0 or the end of a word, but not the text's.
size_t EndOfWord(std::string_view text, size_t begin, const CodePointClasses& classes);

}  // namespace longshort::models
