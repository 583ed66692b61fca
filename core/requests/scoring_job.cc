#include "core/requests/scoring_job.h"

#include <utility>

#include "base/status_macros.h"

namespace longshort {

ScoringJob::ScoringJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener, int64_t vocabulary_size,
                       LanguageModelEngineObserver& observer, std::vector<int32_t> history)
    : Job(TokenStream(std::move(history), std::move(request.tokens))),
      request_(std::move(request)),
      listener_(std::move(listener)),
      vocabulary_size_(vocabulary_size),
      observer_(observer) {}

absl::Status ScoringJob::OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) {
  for (int64_t row = 0; row < count; ++row) {
    LS_RETURN_IF_ERROR(log_probabilities_.SetRow(logits.subspan(row * vocabulary_size_, vocabulary_size_)));
    const int32_t token = stream_[stream_.read() + row + 1];
    const double log_probability = log_probabilities_.Of(token);
    if (request_.log_probabilities) {
      score_.tokens.push_back({.token = token,
                               .log_probability = static_cast<float>(log_probability),
                               .alternatives = log_probabilities_.Likeliest(request_.top_alternatives)});
    }
    score_.total_log_probability += log_probability;
    ++score_.scored_tokens;
  }
  stream_.MarkReadUntil(stream_.read() + count);
  if (complete()) {
    times.prefilled = now;
    observer_.OnPrefilled(now - times.started, prompt_tokens());
  }
  return absl::OkStatus();
}

void ScoringJob::Finish(const absl::Status& status, absl::Time now) {
  if (!status.ok()) {
    listener_->OnFinished(status);
    return;
  }
  score_.timings = times.TimingsAt(now);
  score_.reused_tokens = reused_tokens();
  if (request_.session.has_value()) score_.session_tokens = SessionTokens();
  listener_->OnFinished(std::move(score_));
}

}  // namespace longshort
