#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "models/tokenizer/token_spans.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

constexpr int32_t kNewlineId = 2;  // fairseq's </s>, which ends each line
constexpr int32_t kFirstSymbolId = 4;

// The text of each id. Ids with an empty text are never produced.
using Pieces = std::vector<std::string>;

absl::Status WrongLine(const std::string& name, size_t symbol_index, std::string_view symbol,
                       absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: line %d: symbol %s %s", name, symbol_index + 1, QuoteSymbol(symbol), reason));
}

// The byte of a symbol in a byte vocabulary. Errors describe the problem with the symbol.
absl::StatusOr<std::string> ByteOf(std::string_view symbol) {
  int32_t value = -1;
  const std::errc error = std::from_chars(symbol.data(), symbol.data() + symbol.size(), value).ec;
  if (error != std::errc() || value < 0 || value > 255 || std::to_string(value) != symbol) {
    return absl::InvalidArgumentError("is not the decimal number of a byte, 0..255");
  }
  if (value == '\n') return absl::InvalidArgumentError("is the newline, which has id 2");
  return std::string(1, static_cast<char>(value));
}

// The text of a symbol in a character vocabulary.
absl::StatusOr<std::string> CharacterOf(std::string_view symbol) {
  const std::optional<Utf8Character> character = FirstUtf8Character(symbol);
  if (!character || character->bytes != static_cast<int64_t>(symbol.size())) {
    return absl::InvalidArgumentError("is not one UTF-8 character");
  }
  if (symbol == " ") return absl::InvalidArgumentError("is the space, which \"_\" stands for");
  return std::string(symbol == "_" ? std::string_view(" ") : symbol);
}

absl::StatusOr<Pieces> ReadPieces(Tokenizer::Unit unit, std::string_view text, const std::string& name,
                                  int64_t vocabulary_size) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> symbols, ParseVocabulary(text, name));
  if (symbols.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": there are no symbols; a model without text needs no file"));
  }
  const auto listed = kFirstSymbolId + static_cast<int64_t>(symbols.size());
  if (listed > vocabulary_size || vocabulary_size > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %d + %d symbols do not fit the model's vocabulary_size, %d",
                                                      name, kFirstSymbolId, symbols.size(), vocabulary_size));
  }
  Pieces pieces(static_cast<size_t>(vocabulary_size));
  pieces[kNewlineId] = std::string(1, '\n');
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (IsMadeUpWord(symbols[i])) continue;
    absl::StatusOr<std::string> piece = unit == Tokenizer::Unit::kByte ? ByteOf(symbols[i]) : CharacterOf(symbols[i]);
    if (!piece.ok()) return WrongLine(name, i, symbols[i], piece.status().message());
    pieces[kFirstSymbolId + i] = *std::move(piece);
  }
  return pieces;
}

// The common part of both tokenizers: ids to text.
class FairseqTokenizer : public Tokenizer {
 public:
  explicit FairseqTokenizer(Pieces pieces) : pieces_(std::move(pieces)) {}

  int64_t vocabulary_size() const final { return static_cast<int64_t>(pieces_.size()); }
  bool IsProducible(int32_t id) const final { return !Decode(id).empty(); }
  std::string_view Decode(int32_t id) const final {
    if (id < 0 || static_cast<size_t>(id) >= pieces_.size()) return {};
    return pieces_[static_cast<size_t>(id)];
  }

 private:
  const Pieces pieces_;
};

class ByteTokenizer final : public FairseqTokenizer {
 public:
  explicit ByteTokenizer(const Pieces& pieces) : FairseqTokenizer(pieces) {
    id_of_.fill(kNone);
    for (size_t id = 0; id < pieces.size(); ++id) {
      if (!pieces[id].empty()) id_of_[static_cast<uint8_t>(pieces[id][0])] = static_cast<int32_t>(id);
    }
  }

  Unit unit() const override { return Unit::kByte; }

  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t limit) const override {
    DocumentBeginning beginning{.ids = {}, .tokens = static_cast<int64_t>(text.size())};
    beginning.ids.reserve(std::min(beginning.tokens, limit));
    for (size_t offset = 0; offset < text.size(); ++offset) {
      const auto byte = static_cast<uint8_t>(text[offset]);
      if (id_of_[byte] == kNone) {
        return absl::InvalidArgumentError(
            absl::StrFormat("byte 0x%02X at offset %d is not in the model's vocabulary", byte, offset));
      }
      if (static_cast<int64_t>(offset) < limit) beginning.ids.push_back(id_of_[byte]);
    }
    return beginning;
  }

  absl::StatusOr<std::vector<TokenSpan>> Spans(std::string_view text) const override {
    LS_RETURN_IF_ERROR(EncodeBeginning(text, 0).status());
    return SpansOfBytes(text);
  }

 private:
  static constexpr int32_t kNone = -1;
  std::array<int32_t, 256> id_of_;
};

class CharacterTokenizer final : public FairseqTokenizer {
 public:
  explicit CharacterTokenizer(const Pieces& pieces) : FairseqTokenizer(pieces) {
    for (size_t id = 0; id < pieces.size(); ++id) {
      if (!pieces[id].empty()) id_of_.emplace(FirstUtf8Character(pieces[id])->code_point, static_cast<int32_t>(id));
    }
  }

  Unit unit() const override { return Unit::kCharacter; }

  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t limit) const override {
    DocumentBeginning beginning;
    beginning.ids.reserve(std::min(static_cast<int64_t>(text.size()), limit));
    size_t offset = 0;
    while (offset < text.size()) {
      const std::optional<Utf8Character> character = FirstUtf8Character(text.substr(offset));
      if (!character) {
        return absl::InvalidArgumentError(absl::StrFormat("byte 0x%02X at byte offset %d is not valid UTF-8",
                                                          static_cast<uint8_t>(text[offset]), offset));
      }
      const auto found = id_of_.find(character->code_point);
      if (found == id_of_.end()) return NotInVocabulary(text.substr(offset, character->bytes), *character, offset);
      if (beginning.tokens++ < limit) beginning.ids.push_back(found->second);
      offset += static_cast<size_t>(character->bytes);
    }
    beginning.ids.shrink_to_fit();
    return beginning;
  }

  absl::StatusOr<std::vector<TokenSpan>> Spans(std::string_view text) const override {
    LS_RETURN_IF_ERROR(EncodeBeginning(text, 0).status());
    std::vector<TokenSpan> spans;
    for (int64_t begin = 0, end = 0; begin < static_cast<int64_t>(text.size()); begin = end) {
      end = begin + static_cast<int64_t>(FirstUnit(text.substr(begin)).bytes);
      const auto character = static_cast<int64_t>(spans.size());
      spans.push_back({begin, end, character, character + 1});
    }
    return spans;
  }

 private:
  static absl::Status NotInVocabulary(std::string_view text, const Utf8Character& character, size_t offset) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "character U+%04X '%s' at byte offset %d is not in the model's vocabulary",
        static_cast<uint32_t>(character.code_point), absl::Utf8SafeCHexEscape(std::string(text)), offset));
  }

  absl::flat_hash_map<char32_t, int32_t> id_of_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFairseqTokenizer(Tokenizer::Unit unit, std::string_view text,
                                                                const std::string& name, int64_t vocabulary_size) {
  LS_ASSIGN_OR_RETURN(const Pieces pieces, ReadPieces(unit, text, name, vocabulary_size));
  if (unit == Tokenizer::Unit::kByte) return std::make_unique<ByteTokenizer>(pieces);
  return std::make_unique<CharacterTokenizer>(pieces);
}

}  // namespace longshort::models
