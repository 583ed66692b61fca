#include "models/tokenizer/token_spans.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/utf8.h"

namespace longshort::models {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The number of bytes at the beginning that are ASCII, eight at a time.
size_t AsciiBytes(std::string_view text) {
  size_t bytes = 0;
  for (uint64_t word; bytes + sizeof(word) <= text.size(); bytes += sizeof(word)) {
    std::memcpy(&word, text.data() + bytes, sizeof(word));
    if ((word & 0x8080808080808080) != 0) break;
  }
  return bytes;
}

// Counts the characters of a text up to places that do not fall.
class CharacterCount final {
 public:
  explicit CharacterCount(std::string_view text) : text_(text) {}

  // The number of characters that end at or before `byte`.
  int64_t EndedBy(size_t byte) {
    while (at_ < text_.size()) {
      const size_t bytes = FirstUnit(text_.substr(at_)).bytes;
      if (at_ + bytes > byte) break;
      at_ += bytes;
      ++characters_;
    }
    return static_cast<int64_t>(characters_);
  }
  // Whether a character begins at the place of the last count.
  bool IsAt(size_t byte) const { return at_ == byte; }

 private:
  const std::string_view text_;
  size_t at_ = 0;
  size_t characters_ = 0;
};

}  // namespace

TextUnit FirstUnit(std::string_view text) {
  Utf8Decoder decoder;
  size_t bytes = 0;
  for (const char byte : text) {
    switch (decoder.Take(static_cast<uint8_t>(byte))) {
      case Utf8Decoder::Result::kMore:
        ++bytes;
        break;
      case Utf8Decoder::Result::kWhole:
        return {bytes + 1, true};
      case Utf8Decoder::Result::kRejected:
        return {std::max<size_t>(bytes, 1), false};
    }
  }
  return {bytes, false};
}

void SetCharacters(std::string_view text, std::vector<TokenSpan>& spans) {
  // Two, because tokens of one character overlap.
  CharacterCount begins(text), ends(text);
  for (TokenSpan& span : spans) {
    span.character_begin = begins.EndedBy(span.byte_begin);
    span.character_end = ends.EndedBy(span.byte_end);
    if (span.byte_end > span.byte_begin && !ends.IsAt(span.byte_end)) ++span.character_end;
  }
}

std::vector<TokenSpan> SpansOfBytes(std::string_view text) {
  std::vector<TokenSpan> spans;
  spans.reserve(text.size());
  for (int64_t character = 0; spans.size() < text.size(); ++character) {
    for (size_t left = FirstUnit(text.substr(spans.size())).bytes; left > 0; --left) {
      const auto byte = static_cast<int64_t>(spans.size());
      spans.push_back({byte, byte + 1, character, character + 1});
    }
  }
  return spans;
}

RepairedText::RepairedText(std::string_view original) : text_(original) {
  size_t copied = 0;
  for (size_t at = 0; at < original.size();) {
    at += AsciiBytes(original.substr(at));
    if (at == original.size()) break;
    const TextUnit unit = FirstUnit(original.substr(at));
    if (!unit.is_character) {
      repaired_.append(original.substr(copied, at - copied));
      replacements_.push_back({repaired_.size(), at, unit.bytes});
      repaired_.append(kReplacement);
      copied = at + unit.bytes;
    }
    at += unit.bytes;
  }
  if (replacements_.empty()) return;
  repaired_.append(original.substr(copied));
  text_ = repaired_;
}

TokenSpan RepairedText::Original(size_t begin, size_t end) const {
  TokenSpan span;
  span.byte_begin = static_cast<int64_t>(OriginalOf(begin, false));
  span.byte_end = static_cast<int64_t>(OriginalOf(end, true));
  return span;
}

size_t RepairedText::OriginalOf(size_t at, bool is_end) const {
  const auto after = std::upper_bound(
      replacements_.begin(), replacements_.end(), at,
      [&](size_t place, const Replacement& other) { return is_end ? place <= other.at : place < other.at; });
  if (after == replacements_.begin()) return at;
  const Replacement& before = *std::prev(after);
  const size_t end = before.at + kReplacement.size();
  if (at < end) return is_end ? before.original + before.bytes : before.original;
  return before.original + before.bytes + (at - end);
}

}  // namespace longshort::models
