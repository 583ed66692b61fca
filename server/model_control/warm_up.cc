#include <algorithm>
#include <exception>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "server/model_control/load_models.h"

namespace longshort::server {
namespace {

// Tokens of a document. A prompt has at least one chunk, so that a chunk is finished.
constexpr int64_t kTokens = 64;
// Side of the square image before it is resized for the model.
constexpr int64_t kPixels = 64;

absl::Status ReadOn(models::LanguageModel& model, core::CachedSequence& sequence, absl::Span<const int32_t> tokens) {
  models::Slice slice;
  slice.tokens = tokens;
  slice.logit_rows = 1;
  LS_RETURN_IF_ERROR(sequence.FillIn(slice));
  LS_RETURN_IF_ERROR(model.Step({slice}).status());
  sequence.OnRead(tokens);
  return absl::OkStatus();
}

absl::Status Run(const models::LoadedLanguageModel& loaded, const models::WorkerDevice& device) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::LanguageModel> model, loaded.weights.NewReplica(device));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<core::PagedCache> cache,
                      core::PagedCache::Create(*model, core::PagesForStreams(model->info(), 1)));
  const std::vector<int32_t> prompt(std::max(kTokens, model->info().chunk_size));
  const auto tokens = static_cast<int64_t>(prompt.size());
  {
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<core::CachedSequence> sequence, cache->Begin(prompt, 0, tokens + 1));
    for (int64_t read = 0; read < tokens;) {
      const int64_t piece = sequence->MaxTokens(tokens - read);
      LS_RETURN_IF_ERROR(ReadOn(*model, *sequence, absl::MakeConstSpan(prompt).subspan(read, piece)));
      read += piece;
    }
    LS_RETURN_IF_ERROR(ReadOn(*model, *sequence, absl::MakeConstSpan(prompt).first(1)));
  }
  model->Rest();
  return absl::OkStatus();
}

absl::StatusOr<models::ClassifierItem> MakeItem(const models::LoadedClassifier& loaded) {
  const models::ClassifierInfo& info = loaded.weights.info();
  if (loaded.preprocessor != nullptr) {
    const int64_t channels = info.input == models::ClassifierInput::kImage ? info.channels : 1;
    const std::vector<uint8_t> grey(kPixels * kPixels * channels, 128);
    return loaded.preprocessor->Convert(
        {.height = kPixels, .width = kPixels, .channels = channels, .values = absl::MakeConstSpan(grey)});
  }
  const int32_t id = info.padding_id == 0 ? 1 : 0;  // not masked
  const std::vector<int32_t> document(std::min(kTokens, info.max_document_tokens), id);
  return models::TokenItem{.documents = std::vector<std::vector<int32_t>>(info.documents, document)};
}

absl::Status Run(const models::LoadedClassifier& loaded, const models::WorkerDevice& device) {
  LS_ASSIGN_OR_RETURN(const models::ClassifierItem item, MakeItem(loaded));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::Classifier> classifier, loaded.weights.NewReplica(device));
  using models::ClassifierOutput;
  const bool has_head = classifier->info().classes > 0;
  const ClassifierOutput output = has_head ? ClassifierOutput::kLogits : ClassifierOutput::kFeatures;
  LS_RETURN_IF_ERROR(classifier->Run({&item}, output).status());
  LS_RETURN_IF_ERROR(classifier->Run({&item, &item}, output).status());
  classifier->Rest();
  return absl::OkStatus();
}

}  // namespace

absl::Status WarmUp(const models::LoadedModel& loaded, const models::WorkerDevice& device) {
  try {
    return std::visit([&device](const auto& model) { return Run(model, device); }, loaded);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the model's first step failed: ", error.what()));
  }
}

}  // namespace longshort::server
