#include "server/scoring/text_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scoring/classifier_scorer.h"
#include "server/scoring/language_model_scorer.h"

namespace longshort {

int64_t TextToScore::tokens() const {
  int64_t tokens = 0;
  for (const std::vector<int32_t>& document : documents) tokens += static_cast<int64_t>(document.size());
  return tokens;
}

absl::StatusOr<std::unique_ptr<TextScorer>> TextScorer::Make(std::shared_ptr<const ServedModel> model,
                                                             const v1::ScoreTextsOptions& options,
                                                             const RequestLimits& limits) {
  if (const ServedLanguageModel* language_model = model->language_model(); language_model != nullptr) {
    return MakeLanguageModelScorer({std::move(model), language_model}, options, limits);
  }
  const ServedClassifier* classifier = model->classifier();
  if (classifier->info.input == ClassifierInput::kText) {
    return MakeClassifierScorer({std::move(model), classifier}, options, limits);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("texts cannot be scored: model ", model->name, " is a classifier of images"));
}

}  // namespace longshort
