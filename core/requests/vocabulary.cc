#include "core/requests/vocabulary.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<Vocabulary> Vocabulary::Make(int64_t size, std::shared_ptr<const Tokenizer> tokenizer) {
  if (tokenizer && tokenizer->vocabulary_size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has ", tokenizer->vocabulary_size(), " tokens, the model has ", size));
  }
  auto sampleable = std::make_shared<std::vector<int32_t>>();
  for (int64_t id = 0; id < size; ++id) {
    const auto token = static_cast<int32_t>(id);
    if (!tokenizer || tokenizer->IsProducible(token)) sampleable->push_back(token);
  }
  if (sampleable->empty()) return absl::InvalidArgumentError("the vocabulary has no token that may be sampled");
  return Vocabulary{.size = size, .sampleable = std::move(sampleable), .tokenizer = std::move(tokenizer)};
}

}  // namespace longshort
