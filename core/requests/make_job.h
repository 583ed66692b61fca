// Makes jobs of requests: behind the session that a request refers to, which the job then has until it ends.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/requests/generation_job.h"
#include "core/requests/generation_request.h"
#include "core/requests/job.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/scoring_request.h"
#include "core/session/session_store.h"

namespace longshort {

// `vocabulary`, `observer` and `sessions` must outlive the job.
// Errors: as SessionStore::Open; FAILED_PRECONDITION if the session holds other than the expected tokens;
// INVALID_ARGUMENT for an empty prompt behind no session's tokens.
absl::StatusOr<std::unique_ptr<Job>> MakeJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions,
                                             const std::shared_ptr<SessionPages>& pages = nullptr);
absl::StatusOr<std::unique_ptr<Job>> MakeJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions,
                                             const std::shared_ptr<SessionPages>& pages = nullptr);

}  // namespace longshort
