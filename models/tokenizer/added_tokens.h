// Tokens that are found in the text before it is split into words, with Hugging Face's rules: <mask>, </s>.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace longshort::models {

struct AddedToken {
  std::string content;  // not empty
  int32_t id = 0;
  bool single_word = false;  // found only if no word character is beside it
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // takes the white space behind it
};

// Finds tokens of a set in texts. Immutable, hence thread-safe.
class AddedTokens final {
 public:
  static constexpr size_t kMaxContentBytes = 256;  // bounds the time of a search

  // A token's place in the text, or that of the text between two tokens. The parts of a text follow each other; they
  // overlap where a token begins with the white space that the one before it takes.
  struct Part {
    const AddedToken* token;  // null: text
    size_t begin;
    size_t end;
  };

  // REQUIRES: no two have the same content, and none is longer than kMaxContentBytes.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // Calls `use(part)` for each part of `text`, which is well-formed UTF-8, from left to right. Of several tokens at a
  // place, the longest is found.
  template <typename Use>
  void Split(std::string_view text, const Use& use) const {
    size_t done = 0;
    size_t searched = 0;
    while (const AddedToken* const token = Find(text, searched)) {
      const size_t found = searched;
      searched += token->content.size();
      if (token->single_word && HasWordBeside(text, found, searched)) continue;
      const size_t end = token->right_strip ? EndOfSpaces(text, searched) : searched;
      const size_t begin = token->left_strip ? std::min(BeginOfSpaces(text, found, done), end) : found;
      if (done < begin) use(Part{nullptr, done, begin});
      use(Part{token, begin, end});
      done = end;
    }
    if (done != text.size()) use(Part{nullptr, done, text.size()});
  }

 private:
  // The next token at or behind `from`, which is set to its begin; null if there is none.
  const AddedToken* Find(std::string_view text, size_t& from) const;
  // The longest token that `text` begins with, or null.
  const AddedToken* LongestAt(std::string_view text) const;
  static bool HasWordBeside(std::string_view text, size_t begin, size_t end);
  // The beginning of the white space that ends at `end`, at least `limit`.
  static size_t BeginOfSpaces(std::string_view text, size_t end, size_t limit);
  static size_t EndOfSpaces(std::string_view text, size_t begin);

  std::vector<AddedToken> tokens_;
  std::vector<bool> begins_;  // by byte: whether a token begins with it
  // A trie: from a node and a byte to a node; the root is 0.
  absl::flat_hash_map<uint64_t, uint32_t> children_;
  std::vector<int32_t> token_of_;  // by node: the index of the token that ends there, or -1
};

}  // namespace longshort::models
