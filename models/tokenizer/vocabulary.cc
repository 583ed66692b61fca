#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

constexpr std::string_view kMadeUpPrefix = "madeupword";
constexpr std::string_view kOverwriteFlag = " #fairseq:overwrite";

bool IsDecimal(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// The symbol of a line, or nothing if the line is not "symbol count".
std::string_view SymbolOf(std::string_view line) {
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || !IsDecimal(line.substr(space + 1))) return {};
  return line.substr(0, space);
}

}  // namespace

absl::StatusOr<std::vector<std::string_view>> ParseVocabulary(std::string_view text, const std::string& name) {
  std::vector<std::string_view> symbols;
  absl::flat_hash_map<std::string_view, int64_t> line_of;  // the line of each symbol
  int64_t line_number = 0;
  const auto wrong = [&name, &line_number](std::string_view reason) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: line %d: %s", name, line_number, reason));
  };
  // A byte order mark, unless it is the first symbol.
  if (!text.starts_with("\xef\xbb\xbf ")) text = WithoutByteOrderMark(text);
  while (!text.empty()) {
    ++line_number;
    const std::string_view line = TakeLine(text);
    if (line.ends_with(kOverwriteFlag)) return wrong("#fairseq:overwrite is not supported: symbols have one id");
    const std::string_view symbol = SymbolOf(line);
    if (symbol.empty()) return wrong(absl::StrFormat("%s is not \"symbol count\"", QuoteSymbol(line)));
    const auto [place, is_new] = line_of.emplace(symbol, line_number);
    if (!is_new) return wrong(absl::StrFormat("symbol %s is already on line %d", QuoteSymbol(symbol), place->second));
    symbols.push_back(symbol);
  }
  return symbols;
}

std::string QuoteSymbol(std::string_view symbol) {
  return absl::StrFormat("'%s'", absl::CHexEscape(std::string(symbol.substr(0, 60))));
}

bool IsMadeUpWord(std::string_view symbol) {
  return symbol.starts_with(kMadeUpPrefix) && symbol.size() >= kMadeUpPrefix.size() + 4 &&
         IsDecimal(symbol.substr(kMadeUpPrefix.size()));
}

}  // namespace longshort::models
