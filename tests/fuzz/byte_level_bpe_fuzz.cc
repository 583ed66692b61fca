// Parses any text as tokenizer.json. It is rejected with a message, or the tokenizer encodes any text: its tokens are
// in the model's vocabulary, their number is that of the whole text, and their places are in the text.
//
// The input up to a NUL byte is the file, the rest is the text. Without a NUL, the file is a good one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "models/tokenizer/tokenizers.h"
#include "tests/fuzz/require.h"

namespace {

using longshort::Require;
using longshort::models::DocumentBeginning;
using longshort::models::TextEncoder;

constexpr int64_t kRows = 64;
// Added tokens that strip and overlap, an unknown token, and merges over parts of characters.
constexpr std::string_view kGoodFile = R"({"added_tokens": [
{"id": 0, "content": "<s>", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false, "special": true},
{"id": 2, "content": "</s>", "single_word": true, "lstrip": false, "rstrip": true, "normalized": true, "special": true},
{"id": 3, "content": " a", "single_word": false, "lstrip": true, "rstrip": false, "normalized": true, "special": false}],
"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": true},
"model": {"unk_token": "?", "fuse_unk": true, "vocab": {"<s>": 0, "?": 1, "</s>": 2, " a": 3, "a": 4, "b": 5, "Ġ": 6, "Ã": 7,
"©": 8, "ab": 9, "aba": 10, "Ġa": 11, "Ã©": 12, "½": 13, "¿½": 14, "¿": 15, "ï": 16, "ï¿½": 17, "aa": 18, "aaaa": 19},
"merges": [["a", "b"], ["ab", "a"], ["Ġ", "a"], ["Ã", "©"], ["¿", "½"], ["ï", "¿½"], ["a", "a"], ["aa", "aa"]]}})";

void RequireTokens(const TextEncoder& tokenizer, std::string_view text) {
  const auto ids = tokenizer.Encode(text);
  Require(ids.ok() && ids->size() >= 2, "any text can be encoded");
  Require(std::all_of(ids->begin(), ids->end(), [](int32_t id) { return id >= 0 && id < kRows; }), "ids have rows");
  const auto spans = tokenizer.Spans(text);
  Require(spans.ok() && spans->size() == ids->size(), "each token has a place");
  for (const auto& span : *spans) {
    Require(
        0 <= span.byte_begin && span.byte_begin <= span.byte_end && span.byte_end <= static_cast<int64_t>(text.size()),
        "bytes are in the text");
    Require(0 <= span.character_begin && span.character_begin <= span.character_end &&
                span.character_end <= static_cast<int64_t>(text.size()),
            "characters are in the text");
  }
  for (const int64_t limit : {4, 7}) {
    const DocumentBeginning beginning = *tokenizer.EncodeBeginning(text, limit);
    Require(beginning.tokens == static_cast<int64_t>(ids->size()), "all tokens count");
    Require(static_cast<int64_t>(beginning.ids.size()) == std::min(limit, beginning.tokens), "the limit holds");
    Require(beginning.ids.front() == ids->front() && beginning.ids.back() == ids->back(), "the ends stay");
    const DocumentBeginning pair = JoinPair(beginning, beginning, 2, limit);
    Require(static_cast<int64_t>(pair.ids.size()) == std::min(limit, pair.tokens), "the limit of a pair holds");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<TextEncoder> good = *longshort::models::LoadByteLevelBpe(kGoodFile, "good", kRows);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  if (end == std::string_view::npos) {
    RequireTokens(*good, input);
    return 0;
  }
  const auto tokenizer = longshort::models::LoadByteLevelBpe(input.substr(0, end), "fuzz", kRows);
  if (!tokenizer.ok()) {
    Require(tokenizer.status().code() == absl::StatusCode::kInvalidArgument, "a broken file is an invalid argument");
    return 0;
  }
  RequireTokens(**tokenizer, input.substr(end + 1));
  return 0;
}
