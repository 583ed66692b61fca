// Scores texts by a language model: how likely it finds them.
#pragma once

#include <memory>

#include "server/scoring/text_scorer.h"

namespace longshort {

// Errors: INVALID_ARGUMENT for options that are out of range, or for classifiers only.
absl::StatusOr<std::unique_ptr<TextScorer>> MakeLanguageModelScorer(std::shared_ptr<const ServedLanguageModel> model,
                                                                    const v1::ScoreTextsOptions& options,
                                                                    const RequestLimits& limits);

}  // namespace longshort
