#include "core/requests/make_job.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/generation_job.h"
#include "core/requests/scoring_job.h"

namespace longshort {
namespace {

// The session that a request refers to; nothing if it refers to none.
absl::StatusOr<std::optional<SessionStore::Lease>> OpenSession(const RequestContext& context,
                                                               const std::optional<SessionReference>& reference,
                                                               SessionStore& sessions,
                                                               const std::shared_ptr<SessionPages>& pages) {
  if (!reference.has_value()) return std::nullopt;
  const std::optional<int64_t>& expected = reference->expected_tokens;
  const bool must_exist = reference->must_exist || (expected.has_value() && *expected > 0);
  LS_ASSIGN_OR_RETURN(SessionStore::Lease session,
                      sessions.Open({.client = context.client, .id = reference->id}, must_exist, pages));
  const auto held = static_cast<int64_t>(session.tokens().size());
  if (expected.has_value() && held != *expected) {
    return absl::FailedPreconditionError(absl::StrCat(
        "session ", reference->id, " holds ", held, " tokens, expected were ", *expected,
        ": another call went on with it, perhaps one whose answer did not come through; begin another under a new id"));
  }
  return session;
}

std::vector<int32_t> TokensOf(const std::optional<SessionStore::Lease>& session) {
  return session.has_value() ? session->tokens() : std::vector<int32_t>();
}

std::unique_ptr<Job> WithSession(std::unique_ptr<Job> job, std::optional<SessionStore::Lease> session,
                                 const std::shared_ptr<SessionPages>& pages) {
  job->seat = SeatInCache(session.has_value() ? session->parked() : std::nullopt, pages);
  if (session.has_value()) job->holdings.session.emplace(*std::move(session));
  return job;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> MakeJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions, const std::shared_ptr<SessionPages>& pages) {
  LS_ASSIGN_OR_RETURN(auto session, OpenSession(request.context, request.session, sessions, pages));
  std::vector<int32_t> history = TokensOf(session);
  if (history.empty() && request.prompt.empty()) {
    return absl::InvalidArgumentError("the prompt is empty, and no session is there to go on from");
  }
  auto job = std::make_unique<GenerationJob>(std::move(request), std::move(listener), vocabulary, observer,
                                             std::move(history));
  return WithSession(std::move(job), std::move(session), pages);
}

absl::StatusOr<std::unique_ptr<Job>> MakeJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions, const std::shared_ptr<SessionPages>& pages) {
  LS_ASSIGN_OR_RETURN(auto session, OpenSession(request.context, request.session, sessions, pages));
  std::vector<int32_t> history = TokensOf(session);
  auto job = std::make_unique<ScoringJob>(std::move(request), std::move(listener), vocabulary.size, observer,
                                          std::move(history));
  return WithSession(std::move(job), std::move(session), pages);
}

}  // namespace longshort
