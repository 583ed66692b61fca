// The places of tokens in texts that may have bytes that are not UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// The first character of `text`: its length. If the character is incomplete or invalid, `bytes` is the length of its
// valid beginning, at least 1. REQUIRES: `text` is not empty.
struct TextUnit {
  size_t bytes;
  bool is_character;
};
TextUnit FirstUnit(std::string_view text);

// Sets the characters of spans whose bytes are set. REQUIRES: begins and ends do not fall from one span to the next.
void SetCharacters(std::string_view text, std::vector<TokenSpan>& spans);

// The spans of tokens of one byte each.
std::vector<TokenSpan> SpansOfBytes(std::string_view text);

// A text in which U+FFFD replaces each part that is not UTF-8, as Python's bytes.decode("utf-8", errors="replace")
// does.
class RepairedText final {
 public:
  // `original` must outlive this.
  explicit RepairedText(std::string_view original);

  // Well-formed UTF-8; `original` itself if it is.
  std::string_view text() const { return text_; }
  // The place in the original of a part of the text. A part of a U+FFFD is all that it replaces.
  TokenSpan Original(size_t begin, size_t end) const;

 private:
  struct Replacement {
    size_t at;        // of U+FFFD
    size_t original;  // the place of the replaced bytes, and their number
    size_t bytes;
  };
  // The place in the original of the byte at `at`: its begin, or its end.
  size_t OriginalOf(size_t at, bool is_end) const;

  std::string repaired_;
  std::string_view text_;
  std::vector<Replacement> replacements_;
};

}  // namespace longshort::models
