#include "tests/determinism/replayed_logits.h"

#include <memory>

#include "absl/types/span.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"

namespace longshort {

std::vector<float> LogitsBehind(const models::LanguageModelWeights& model, const std::vector<int32_t>& tokens) {
  const std::unique_ptr<models::LanguageModel> replica = model.NewReplica({.threads = 1}).value();
  const auto cache = core::PagedCache::Create(*replica, core::PagesForStreams(replica->info(), 1)).value();
  const auto count = static_cast<int64_t>(tokens.size());
  const auto sequence = cache->Begin(tokens, 0, count).value();
  while (true) {
    models::Slice slice;
    slice.tokens =
        absl::MakeConstSpan(tokens).subspan(sequence->position(), sequence->MaxTokens(count - sequence->position()));
    slice.logit_rows = 1;
    if (const absl::Status filled = sequence->FillIn(slice); !filled.ok()) return {};
    const models::StepResult result = replica->Step({slice}).value();
    sequence->OnRead(slice.tokens);
    if (sequence->position() == count) return {result.logits.begin(), result.logits.end()};
  }
}

}  // namespace longshort
