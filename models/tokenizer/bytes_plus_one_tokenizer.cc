#include "models/tokenizer/bytes_plus_one_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace longshort {
namespace {

class BytesPlusOneTokenizer final : public DocumentTokenizer {
 public:
  absl::StatusOr<DocumentBeginning> EncodeBeginning(std::string_view text, int64_t most) const override {
    const auto tokens = static_cast<int64_t>(text.size());
    DocumentBeginning beginning{.ids = std::vector<int32_t>(std::min(tokens, most)), .tokens = tokens};
    std::transform(text.begin(), text.begin() + static_cast<int64_t>(beginning.ids.size()), beginning.ids.begin(),
                   [](char byte) { return static_cast<int32_t>(static_cast<uint8_t>(byte)) + 1; });
    return beginning;
  }
};

}  // namespace

std::unique_ptr<DocumentTokenizer> MakeBytesPlusOneTokenizer() { return std::make_unique<BytesPlusOneTokenizer>(); }

}  // namespace longshort
