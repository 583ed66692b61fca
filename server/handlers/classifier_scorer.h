// Scorers of texts with classifiers: their classes, or their embeddings.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/calls/embed_call.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {

// REQUIRES: the model takes texts.

// Errors: INVALID_ARGUMENT for an option that is out of range, FAILED_PRECONDITION if the model has no head.
absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassScorer(const std::shared_ptr<const core::ServedClassifier>& model,
                                                            const ScoreOptions& options, const CallNames& names);
// Errors: those of OutputOf (embedding.h).
absl::StatusOr<std::unique_ptr<TextScorer>> MakeEmbeddingScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                                const EmbedOptions& options, const CallNames& names);

}  // namespace longshort::server
