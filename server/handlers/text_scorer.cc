#include "server/handlers/text_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {

int64_t TextToScore::tokens() const {
  int64_t tokens = 0;
  for (const std::vector<int32_t>& document : documents) tokens += static_cast<int64_t>(document.size());
  return tokens;
}

absl::StatusOr<std::unique_ptr<TextScorer>> TextScorer::Make(std::shared_ptr<const ServedModel> model,
                                                             const ScoreOptions& options, const RequestLimits& limits,
                                                             const CallNames& names) {
  if (const ServedLanguageModel* language_model = model->language_model(); language_model != nullptr) {
    return MakeLanguageModelScorer({std::move(model), language_model}, options, limits, names);
  }
  const ServedClassifier* classifier = model->classifier();
  if (classifier->info.input == ClassifierInput::kText) {
    return MakeClassifierScorer({std::move(model), classifier}, options, limits, names);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("texts cannot be scored: model ", model->name, " is a classifier of images"));
}

}  // namespace longshort
