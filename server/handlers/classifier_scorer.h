// Scores texts by a classifier: which classes it gives them.
#pragma once

#include <memory>

#include "server/handlers/text_scorer.h"

namespace longshort {

// REQUIRES: a classifier of texts. Errors: INVALID_ARGUMENT for options that are out of range, or for language models
// only.
absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassifierScorer(std::shared_ptr<const ServedClassifier> model,
                                                                 const ScoreOptions& options,
                                                                 const RequestLimits& limits, const CallNames& names);

}  // namespace longshort
