// Parses any text as vocabulary.txt. It is rejected with a message, or the tokenizer decodes to the text that it
// encodes.
//
// The first byte of the input is the unit (its lowest bit: characters) and the number of embedding rows beyond 4 (the
// other bits). The vocabulary follows, which is also the text to encode.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/tokenizer/tokenizers.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longshort;
  if (size == 0) return 0;
  const models::Tokenizer::Unit unit =
      data[0] % 2 == 0 ? models::Tokenizer::Unit::kByte : models::Tokenizer::Unit::kCharacter;
  const int64_t vocabulary_size = 4 + data[0] / 2;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto tokenizer = models::LoadFairseqTokenizer(unit, text, "fuzz", vocabulary_size);
  if (!tokenizer.ok()) {
    Require(tokenizer.status().code() == absl::StatusCode::kInvalidArgument, "a broken file is an invalid argument");
    return 0;
  }
  Require((*tokenizer)->vocabulary_size() == vocabulary_size, "there is an id for each embedding row");
  std::string encodable;
  for (int32_t id = -1; id <= vocabulary_size; ++id) encodable += (*tokenizer)->Decode(id);
  Require((*tokenizer)->Encode(encodable).ok(), "what can be produced can be encoded");
  for (const std::string_view sample : {text, std::string_view(encodable)}) {
    const auto ids = (*tokenizer)->Encode(sample);
    if (!ids.ok()) continue;
    std::string decoded;
    for (const int32_t id : *ids) {
      Require((*tokenizer)->IsProducible(id), "text has producible ids");
      decoded += (*tokenizer)->Decode(id);
    }
    Require(decoded == sample, "text comes back");
  }
  return 0;
}
