#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/handlers/handlers.h"
#include "server/handlers/image_items.h"
#include "server/handlers/item_answer.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {
namespace {

using Done = std::function<void(absl::StatusOr<EmbedResult>)>;

absl::Status CheckNotSet(const char* field, bool set, const CallNames& names, const char* because) {
  if (!set) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(names.Of(field), " is set; it must be unset, because the model takes ", because));
}

absl::Status EmbedTexts(CallRecord& record, const std::shared_ptr<const core::ServedClassifier>& model, EmbedCall call,
                        Done done) {
  LS_RETURN_IF_ERROR(CheckNotSet("images", !call.images.empty(), record.names(), "texts"));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TextScorer> scorer,
                      MakeEmbeddingScorer(model, call.options, record.names()));
  ScoreCall texts;
  texts.texts = std::move(call.texts);
  texts.second_texts = std::move(call.second_texts);
  return RunTexts(record, texts, scorer, model->max_items, ScoreResult(),
                  [done = std::move(done)](absl::StatusOr<ScoreResult> scored) {
                    if (!scored.ok()) return done(scored.status());
                    EmbedResult result{.embeddings = {}, .usage = scored->usage, .model = std::move(scored->model)};
                    for (ScoredText& text : scored->texts) {
                      result.embeddings.emplace_back(std::get<Embedding>(std::move(text.result)));
                    }
                    done(std::move(result));
                  });
}

absl::Status EmbedImages(CallRecord& record, const std::shared_ptr<const core::ServedClassifier>& model, EmbedCall call,
                         Done done) {
  const CallNames& names = record.names();
  LS_RETURN_IF_ERROR(CheckNotSet("inputs", !call.texts.empty(), names, "images"));
  LS_RETURN_IF_ERROR(CheckNotSet("second_inputs", !call.second_texts.empty(), names, "images"));
  LS_RETURN_IF_ERROR(CheckNotSet("truncate", call.options.truncate, names, "images"));
  LS_RETURN_IF_ERROR(CheckImages(record, *model, call.images.size()));
  LS_ASSIGN_OR_RETURN(const models::ClassifierOutput output, OutputOf(call.options.pooling, model->info, names));
  const auto count = static_cast<int64_t>(call.images.size());
  LS_RETURN_IF_ERROR(CheckEmbeddingsFit(model->info, count, record.max_answer_bytes()));
  LS_RETURN_IF_ERROR(record.answers().Hold(count * MaxEmbeddingBytes(model->info)));
  RunImages(
      record, model, std::move(call.images), output,
      [&record, normalize = call.options.normalize, done = std::move(done)](absl::StatusOr<ImageResults> images) {
        if (!images.ok()) return done(images.status());
        const auto embed = [normalize](core::ItemResult one) { return EmbeddingOf(std::move(one), normalize); };
        done(EmbedResult{
            .embeddings = ConvertEach(*std::move(images), embed), .usage = {}, .model = record.answering_model()});
      });
  return absl::OkStatus();
}

}  // namespace

absl::Status Embed(CallRecord& record, EmbedCall call, Done done) {
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedClassifier> model, record.FindClassifier(call.model));
  record.CountIn(model->statistics, kEmbeddingOperation);
  const bool texts = model->info.input == models::ClassifierInput::kText;
  return (texts ? EmbedTexts : EmbedImages)(record, model, std::move(call), std::move(done));
}

}  // namespace longshort::server
