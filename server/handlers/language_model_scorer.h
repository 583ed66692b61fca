// Scores texts by a language model: how likely it finds them.
#pragma once

#include <memory>

#include "server/handlers/text_scorer.h"

namespace longshort {

// Errors: INVALID_ARGUMENT for options that are out of range, or for classifiers only.
absl::StatusOr<std::unique_ptr<TextScorer>> MakeLanguageModelScorer(std::shared_ptr<const ServedLanguageModel> model,
                                                                    const ScoreOptions& options,
                                                                    const RequestLimits& limits,
                                                                    const CallNames& names);

}  // namespace longshort
