#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "models/tokenizer/token_spans.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

std::array<char, 256> AllBytes() {
  std::array<char, 256> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}

class BytesPlusOneTokenizer final : public TextEncoder {
 public:
  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t limit) const override {
    const auto tokens = static_cast<int64_t>(text.size());
    DocumentBeginning beginning{.ids = std::vector<int32_t>(std::min(tokens, limit)), .tokens = tokens};
    std::transform(text.begin(), text.begin() + static_cast<int64_t>(beginning.ids.size()), beginning.ids.begin(),
                   [](char byte) { return static_cast<int32_t>(static_cast<uint8_t>(byte)) + 1; });
    return beginning;
  }
  absl::StatusOr<std::vector<TokenSpan>> Spans(std::string_view text) const override { return SpansOfBytes(text); }
  std::string_view Decode(int32_t id) const override {
    return id >= 1 && id <= 256 ? std::string_view(&bytes_[static_cast<size_t>(id - 1)], 1) : std::string_view();
  }

 private:
  const std::array<char, 256> bytes_ = AllBytes();
};

using SymbolIds = absl::flat_hash_map<std::string, int32_t>;

absl::StatusOr<SymbolIds> ReadSymbols(std::string_view text, const std::string& name) {
  SymbolIds id_of;
  text = WithoutByteOrderMark(text);
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const auto id = static_cast<int32_t>(id_of.size()) + 1;
    const auto wrong = [&](std::string_view reason) {
      return absl::InvalidArgumentError(absl::StrFormat("%s: line %d: %s", name, id, reason));
    };
    if (line.empty() || std::any_of(line.begin(), line.end(), absl::ascii_isspace))
      return wrong(absl::StrFormat("%s is not a symbol: it must be one word", QuoteSymbol(line)));
    const auto [place, is_new] = id_of.emplace(line, id);
    if (!is_new) return wrong(absl::StrFormat("symbol %s is already on line %d", QuoteSymbol(line), place->second));
  }
  return id_of;
}

class ListOpsTokenizer final : public TextEncoder {
 public:
  ListOpsTokenizer(ListOpsRules rules, SymbolIds id_of) : rules_(rules), id_of_(std::move(id_of)) {
    symbols_.resize(id_of_.size() + 1);
    for (const auto& [symbol, id] : id_of_) symbols_[static_cast<size_t>(id)] = symbol;
  }

  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t limit) const override {
    DocumentBeginning beginning;
    ForEachWord(text, [&](const std::string& word, size_t /*begin*/, size_t /*end*/) {
      if (beginning.tokens < limit) beginning.ids.push_back(IdOf(word));
      ++beginning.tokens;
    });
    beginning.ids.shrink_to_fit();
    return beginning;
  }
  absl::StatusOr<std::vector<TokenSpan>> Spans(std::string_view text) const override {
    std::vector<TokenSpan> spans;
    ForEachWord(text, [&](const std::string& /*word*/, size_t begin, size_t end) {
      TokenSpan& span = spans.emplace_back();
      span.byte_begin = static_cast<int64_t>(begin);
      span.byte_end = static_cast<int64_t>(end);
    });
    SetCharacters(text, spans);
    return spans;
  }
  std::string_view Decode(int32_t id) const override {
    if (id < 0 || static_cast<size_t>(id) >= symbols_.size()) return {};
    return symbols_[static_cast<size_t>(id)];
  }

 private:
  // Calls `use(word, begin, end)` with each word and its place in the text.
  template <typename Use>
  void ForEachWord(std::string_view text, const Use& use) const {
    std::string word;
    size_t begin = 0;
    size_t end = 0;  // behind the word's last character; dropped ones may follow
    const auto end_word = [&] {
      if (!word.empty()) use(word, begin, end);
      word.clear();
    };
    for (size_t i = 0; i < text.size(); ++i) {
      if (IsDropped(text[i])) continue;
      if (!IsInWord(text[i])) {
        end_word();
        continue;
      }
      if (word.empty()) begin = i;
      end = i + 1;
      word.push_back(rules_ == ListOpsRules::k2021 && text[i] == ']' ? 'X' : text[i]);
    }
    end_word();
  }
  bool IsDropped(char character) const {
    return rules_ == ListOpsRules::k2021 && (character == '(' || character == ')');
  }
  bool IsInWord(char character) const {
    const auto byte = static_cast<unsigned char>(character);
    if (rules_ == ListOpsRules::k2021) return !absl::ascii_isspace(byte);
    return absl::ascii_isalnum(byte) || byte == '_' || byte >= 0x80;
  }
  int32_t IdOf(const std::string& word) const {
    const auto found = id_of_.find(word);
    return found != id_of_.end() ? found->second : static_cast<int32_t>(id_of_.size()) + 1;
  }

  const ListOpsRules rules_;
  const SymbolIds id_of_;
  std::vector<std::string_view> symbols_;  // by id; padding and unknown words have none
};

}  // namespace

std::unique_ptr<TextEncoder> MakeBytesPlusOneTokenizer() { return std::make_unique<BytesPlusOneTokenizer>(); }

absl::StatusOr<std::unique_ptr<TextEncoder>> LoadListOpsTokenizer(ListOpsRules rules, std::string_view text,
                                                                  const std::string& name, int64_t vocabulary_size) {
  LS_ASSIGN_OR_RETURN(SymbolIds id_of, ReadSymbols(text, name));
  const auto symbols = static_cast<int64_t>(id_of.size());
  if (symbols == 0 || symbols + 2 > vocabulary_size) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: there are %d symbols; with padding and unknown words they must be 3 to %d ids, the model's "
        "vocabulary_size",
        name, symbols, vocabulary_size));
  }
  return std::make_unique<ListOpsTokenizer>(rules, std::move(id_of));
}

}  // namespace longshort::models
