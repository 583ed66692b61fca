#include "models/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "models/tokenizer/code_points.h"

namespace longshort::models {
namespace {

uint64_t EdgeOf(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

bool IsSpace(char32_t code_point) { return CodePointClasses::Get().Of(code_point) == CodePointClass::kSpace; }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), begins_(256), token_of_{-1} {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    begins_[static_cast<uint8_t>(content.front())] = true;
    uint32_t node = 0;
    for (const char byte : content) {
      const auto [child, is_new] = children_.try_emplace(EdgeOf(node, byte), static_cast<uint32_t>(token_of_.size()));
      if (is_new) token_of_.push_back(-1);
      node = child->second;
    }
    token_of_[node] = static_cast<int32_t>(i);
  }
}

const AddedToken* AddedTokens::LongestAt(std::string_view text) const {
  const AddedToken* longest = nullptr;
  uint32_t node = 0;
  for (const char byte : text) {
    const auto child = children_.find(EdgeOf(node, byte));
    if (child == children_.end()) break;
    node = child->second;
    if (token_of_[node] >= 0) longest = &tokens_[token_of_[node]];
  }
  return longest;
}

const AddedToken* AddedTokens::Find(std::string_view text, size_t& from) const {
  if (tokens_.empty()) return nullptr;
  for (; from < text.size(); ++from) {
    if (!begins_[static_cast<uint8_t>(text[from])]) continue;
    if (const AddedToken* const token = LongestAt(text.substr(from))) return token;
  }
  return nullptr;
}

bool AddedTokens::HasWordBeside(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && IsWordCharacter(CodePointBefore(text, begin).value)) ||
         (end < text.size() && IsWordCharacter(CodePointAt(text, end).value));
}

size_t AddedTokens::BeginOfSpaces(std::string_view text, size_t end, size_t limit) {
  size_t begin = end;
  while (begin > limit) {
    const CodePoint before = CodePointBefore(text, begin);
    if (!IsSpace(before.value)) break;
    begin -= before.bytes;
  }
  return std::max(begin, limit);
}

size_t AddedTokens::EndOfSpaces(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size()) {
    const CodePoint next = CodePointAt(text, end);
    if (!IsSpace(next.value)) break;
    end += next.bytes;
  }
  return end;
}

}  // namespace longshort::models
