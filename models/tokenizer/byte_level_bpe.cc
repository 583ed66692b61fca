#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/code_points.h"
#include "models/tokenizer/token_spans.h"
#include "models/tokenizer/tokenizer_json.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

// Merging a word takes some 50 times its bytes.
constexpr size_t kMaxWordBytes = size_t{1} << 20;

// The end of the characters of one class that follow each other from `begin` on.
size_t EndOfRun(std::string_view text, size_t begin, CodePointClass of, const CodePointClasses& classes) {
  size_t end = begin;
  while (end < text.size()) {
    const CodePoint next = CodePointAt(text, end);
    if (classes.Of(next.value) != of) break;
    end += next.bytes;
  }
  return end;
}

// The length of 's, 't, 're, 've, 'm, 'll or 'd at the beginning of `text`; 0 if there is none.
size_t ContractionLength(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  switch (text[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return text.size() > 2 && text[2] == 'e' ? 3 : 0;
    case 'l':
      return text.size() > 2 && text[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

// The end of the word that begins at `text[begin]`. GPT-2's words follow each other without gaps. They are the matches
// of
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// REQUIRES: `text` is well-formed UTF-8, and `begin` is 0 or the end of a word, but not the text's.
size_t EndOfWord(std::string_view text, size_t begin, const CodePointClasses& classes) {
  if (const size_t contraction = ContractionLength(text.substr(begin)); contraction > 0) return begin + contraction;
  // A word may have one space before it.
  const size_t inner = begin + (text[begin] == ' ' && begin + 1 < text.size() ? 1 : 0);
  const CodePointClass of = classes.Of(CodePointAt(text, inner).value);
  if (of != CodePointClass::kSpace) return EndOfRun(text, inner, of, classes);
  // The last space before another character belongs to the next word, unless it is the only one.
  const size_t end = EndOfRun(text, inner, CodePointClass::kSpace, classes);
  if (end == text.size()) return end;
  const size_t last = end - CodePointBefore(text, end).bytes;
  return last > begin ? last : end;
}

// The spaces at the ends of a token, which its offsets leave out.
struct Spaces {
  int64_t leading = 0;  // characters
  int64_t trailing = 0;
  int64_t leading_bytes = 0;
  int64_t trailing_bytes = 0;
};

// Of an added token, all white space counts, and GPT-2's printable form of the space. Of other tokens, which may begin
// or end within a character, only spaces.
Spaces SpacesOf(std::string_view text, bool is_added) {
  constexpr char32_t kPrintableSpace = 0x120;
  const auto is_space = [&](char32_t character) {
    if (!is_added) return character == ' ';
    return character == kPrintableSpace || CodePointClasses::Get().Of(character) == CodePointClass::kSpace;
  };
  const auto character_at = [&](size_t at) {
    return is_added ? CodePointAt(text, at) : CodePoint{static_cast<uint8_t>(text[at]), 1};
  };
  const auto character_before = [&](size_t end) {
    return is_added ? CodePointBefore(text, end) : CodePoint{static_cast<uint8_t>(text[end - 1]), 1};
  };
  Spaces spaces;
  for (size_t at = 0; at < text.size() && is_space(character_at(at).value); at += character_at(at).bytes) {
    ++spaces.leading;
    spaces.leading_bytes += static_cast<int64_t>(character_at(at).bytes);
  }
  for (size_t end = text.size(); end > 0 && is_space(character_before(end).value); end -= character_before(end).bytes) {
    ++spaces.trailing;
    spaces.trailing_bytes += static_cast<int64_t>(character_before(end).bytes);
  }
  return spaces;
}

class ByteLevelBpe final : public TextEncoder {
 public:
  explicit ByteLevelBpe(BpeFile file);

  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t limit) const override;
  absl::StatusOr<std::vector<TokenSpan>> Spans(std::string_view text) const override;
  std::string_view Decode(int32_t id) const override {
    if (id < 0 || static_cast<size_t>(id) >= file_.pieces.size()) return {};
    return file_.pieces[static_cast<size_t>(id)];
  }

 private:
  // A token of a text: its id and its bytes. A space that was added to the text has none.
  struct Token {
    int32_t id;
    size_t begin;
    size_t end;
    bool is_added;
  };

  // Calls `use(token)` for each token of well-formed text, from left to right. Errors: INVALID_ARGUMENT if a word is
  // too long.
  template <typename Use>
  absl::Status Encode(std::string_view text, const Use& use) const;
  // The same for the part of `text` from `begin` to `end`, without added tokens.
  template <typename Use>
  absl::Status EncodeWords(std::string_view text, size_t begin, size_t end, const Use& use) const;
  // The parts of a word that is not a symbol.
  void MergeWord(std::string_view word, std::vector<WordPart>& parts) const;
  // Leaves out spaces at the ends of a token's span.
  void Trim(std::string_view text, const Token& token, bool is_first, TokenSpan& span) const;

  const BpeFile file_;
  const AddedTokens added_;
  const AddedTokens normalized_added_;
  const CodePointClasses& classes_ = CodePointClasses::Get();
  absl::flat_hash_map<std::string_view, int32_t> whole_words_;  // symbols that are their own encoding
};

ByteLevelBpe::ByteLevelBpe(BpeFile file)
    : file_(std::move(file)), added_(file_.added), normalized_added_(file_.normalized_added) {
  std::vector<WordPart> parts;
  for (const int32_t id : file_.symbols) {
    const std::string_view word = file_.pieces[id];
    MergeWord(word, parts);
    if (file_.ignore_merges || (parts.size() == 1 && parts[0].id == id)) whole_words_.emplace(word, id);
  }
}

void ByteLevelBpe::MergeWord(std::string_view word, std::vector<WordPart>& parts) const {
  parts.clear();
  bool fuses = false;
  for (uint32_t i = 0; i < word.size(); ++i) {
    const int32_t id = file_.byte_ids[static_cast<uint8_t>(word[i])];
    if (id >= 0) {
      parts.push_back({id, i, i + 1});
    } else if (file_.unknown_id && fuses) {
      parts.back().end = i + 1;
    } else if (file_.unknown_id) {
      parts.push_back({*file_.unknown_id, i, i + 1});
    }
    fuses = id < 0 && file_.fuse_unknown;
  }
  file_.merges.Apply(parts);
}

template <typename Use>
absl::Status ByteLevelBpe::EncodeWords(std::string_view text, size_t begin, size_t end, const Use& use) const {
  std::string with_space;
  std::string_view words = text.substr(begin, end - begin);
  const bool adds_space = file_.add_prefix_space && words.front() != ' ';
  if (adds_space) {
    with_space.reserve(words.size() + 1);
    with_space.push_back(' ');
    with_space.append(words);
    words = with_space;
  }
  const auto place = [&](size_t at) { return begin + (adds_space && at > 0 ? at - 1 : at); };
  std::vector<WordPart> parts;
  for (size_t at = 0, next = 0; at < words.size(); at = next) {
    next = EndOfWord(words, at, classes_);
    const std::string_view word = words.substr(at, next - at);
    if (word.size() > kMaxWordBytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "a word of %d bytes begins at byte %d; it must be at most %d bytes long, as those between spaces are",
          word.size(), place(at), kMaxWordBytes));
    }
    if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) {
      use(Token{whole->second, place(at), place(next), false});
      continue;
    }
    MergeWord(word, parts);
    for (const WordPart& part : parts) use(Token{part.id, place(at + part.begin), place(at + part.end), false});
  }
  return absl::OkStatus();
}

template <typename Use>
absl::Status ByteLevelBpe::Encode(std::string_view text, const Use& use) const {
  absl::Status status;
  added_.Split(text, [&](const AddedTokens::Part& outer) {
    if (outer.token != nullptr) return use(Token{outer.token->id, outer.begin, outer.end, true});
    normalized_added_.Split(text.substr(outer.begin, outer.end - outer.begin), [&](const AddedTokens::Part& inner) {
      const size_t begin = outer.begin + inner.begin;
      const size_t end = outer.begin + inner.end;
      if (inner.token != nullptr) return use(Token{inner.token->id, begin, end, true});
      if (status.ok()) status = EncodeWords(text, begin, end, use);
    });
  });
  return status;
}

absl::StatusOr<DocumentBeginning> ByteLevelBpe::EncodeBeginning(std::string_view text, int64_t limit) const {
  const RepairedText repaired(text);
  DocumentBeginning beginning;
  beginning.tokens = 2;
  if (limit >= 1) beginning.ids.push_back(file_.begin_id);
  LS_RETURN_IF_ERROR(Encode(repaired.text(), [&](const Token& token) {
    if (beginning.tokens++ < limit) beginning.ids.push_back(token.id);
  }));
  if (limit >= 2) beginning.ids.push_back(file_.end_id);
  beginning.ids.shrink_to_fit();
  return beginning;
}

absl::StatusOr<std::vector<TokenSpan>> ByteLevelBpe::Spans(std::string_view text) const {
  const RepairedText repaired(text);
  std::vector<TokenSpan> spans = {TokenSpan()};
  std::vector<Token> tokens;
  LS_RETURN_IF_ERROR(Encode(repaired.text(), [&](const Token& token) {
    tokens.push_back(token);
    spans.push_back(repaired.Original(token.begin, token.end));
  }));
  SetCharacters(text, spans);
  for (size_t i = 0; i < tokens.size(); ++i) {
    // `tokenizers` counts an added space to the first character.
    if (tokens[i].begin == tokens[i].end && !tokens[i].is_added) ++spans[i + 1].character_end;
    if (file_.trim_offsets) Trim(repaired.text(), tokens[i], i == 0, spans[i + 1]);
  }
  spans.emplace_back();
  return spans;
}

// Characters are trimmed as `tokenizers` does it, which keeps a single space that may be an added one; bytes
// lose all spaces.
void ByteLevelBpe::Trim(std::string_view text, const Token& token, bool is_first, TokenSpan& span) const {
  const std::string_view bytes = text.substr(token.begin, token.end - token.begin);
  const Spaces of_bytes = SpacesOf(bytes, token.is_added);
  const Spaces of_token = token.is_added ? of_bytes : SpacesOf(Decode(token.id), false);
  const bool keeps_one = (is_first || span.character_begin == 0) && file_.trim_added_space;
  const int64_t leading = keeps_one && of_token.leading == 1 ? 0 : of_token.leading;
  span.character_begin = std::min(span.character_begin + leading, span.character_end);
  if (span.character_end >= of_token.trailing) {
    span.character_end = std::max(span.character_end - of_token.trailing, span.character_begin);
  }
  if (of_token.leading > 0) span.byte_begin = std::min(span.byte_begin + of_bytes.leading_bytes, span.byte_end);
  if (of_token.trailing > 0) span.byte_end = std::max(span.byte_end - of_bytes.trailing_bytes, span.byte_begin);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextEncoder>> LoadByteLevelBpe(std::string_view text, const std::string& name,
                                                              int64_t vocabulary_size,
                                                              std::optional<int32_t> separator_id,
                                                              std::optional<int32_t> padding_id) {
  LS_ASSIGN_OR_RETURN(BpeFile file, ParseTokenizerJson(text, name, vocabulary_size));
  if (separator_id && *separator_id != file.end_id) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: the token that ends a sequence has id %d; config.json's separator_id is %d", name,
                        file.end_id, *separator_id));
  }
  if (padding_id && (*padding_id == file.begin_id || *padding_id == file.end_id)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: config.json's padding_id is %d, which is the token that begins or ends a sequence (%d, "
                        "%d) and must not be "
                        "masked",
                        name, *padding_id, file.begin_id, file.end_id));
  }
  return std::make_unique<ByteLevelBpe>(std::move(file));
}

std::pair<int64_t, int64_t> KeptOfPair(int64_t first, int64_t second, int64_t limit) {
  if (first + second <= limit) return {first, second};
  const int64_t shorter = std::min({first, second, limit / 2});
  const int64_t longer = limit - shorter;
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

DocumentBeginning JoinPair(const DocumentBeginning& first, const DocumentBeginning& second, int32_t separator_id,
                           int64_t limit) {
  const auto [kept_first, kept_second] = KeptOfPair(first.tokens, second.tokens, limit);
  DocumentBeginning pair;
  pair.tokens = first.tokens + second.tokens;
  pair.ids.reserve(kept_first + kept_second);
  pair.ids.insert(pair.ids.end(), first.ids.begin(), first.ids.begin() + kept_first - 1);
  pair.ids.push_back(first.ids.back());
  pair.ids.push_back(separator_id);
  pair.ids.insert(pair.ids.end(), second.ids.begin() + 1, second.ids.begin() + kept_second - 1);
  pair.ids.push_back(second.ids.back());
  return pair;
}

}  // namespace longshort::models
