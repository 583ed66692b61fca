#include "models/tokenizer/bytes_plus_one_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace longshort {
namespace {

class BytesPlusOneTokenizer final : public DocumentTokenizer {
 public:
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text) const override {
    std::vector<int32_t> ids(text.size());
    std::transform(text.begin(), text.end(), ids.begin(),
                   [](char byte) { return static_cast<int32_t>(static_cast<uint8_t>(byte)) + 1; });
    return ids;
  }
};

}  // namespace

std::unique_ptr<DocumentTokenizer> MakeBytesPlusOneTokenizer() { return std::make_unique<BytesPlusOneTokenizer>(); }

}  // namespace longshort
