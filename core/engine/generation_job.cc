#include "core/engine/generation_job.h"

#include <algorithm>
#include <utility>

#include "models/status_macros.h"

namespace longshort {

GenerationJob::GenerationJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                             const Vocabulary& vocabulary, EngineObserver& observer)
    : request_(std::move(request)),
      listener_(std::move(listener)),
      vocabulary_(vocabulary),
      observer_(observer),
      sampler_(request_.sampling, vocabulary.sampleable, vocabulary.size, request_.prompt),
      delta_buffer_(request_.stop_strings) {}

absl::Span<const int32_t> GenerationJob::Unread() const {
  if (complete()) return {};
  if (decoding()) return absl::MakeConstSpan(&pending_, 1);
  return absl::MakeConstSpan(request_.prompt).subspan(read_);
}

int64_t GenerationJob::LogitRows(int64_t count) const {
  if (decoding()) return 1;
  if (request_.prompt_log_probabilities) return count;
  return read_ + count == prompt_tokens() ? 1 : 0;
}

absl::Status GenerationJob::OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) {
  if (!decoding()) {
    if (request_.prompt_log_probabilities) LS_RETURN_IF_ERROR(ScorePrompt(count, logits));
    read_ += count;
    if (read_ < prompt_tokens()) return absl::OkStatus();
    times.prefilled = now;
    observer_.OnPrefilled(now - times.started, prompt_tokens());
    if (request_.prompt_log_probabilities) listener_->OnPromptScored(std::move(prompt_scores_));
  }
  return Generate(logits.last(vocabulary_.size), now);
}

absl::Status GenerationJob::ScorePrompt(int64_t count, absl::Span<const float> logits) {
  const int64_t scored = std::min(count, prompt_tokens() - 1 - read_);  // nothing of the prompt follows its last token
  for (int64_t row = 0; row < scored; ++row) {
    LS_ASSIGN_OR_RETURN(GeneratedToken token, Describe(request_.prompt[read_ + row + 1],
                                                       logits.subspan(row * vocabulary_.size, vocabulary_.size)));
    prompt_scores_.push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status GenerationJob::Generate(absl::Span<const float> row, absl::Time now) {
  LS_ASSIGN_OR_RETURN(pending_, sampler_.Sample(row, prompt_tokens() + generated_));
  CountToken(now);
  GeneratedToken token{.token = pending_, .log_probability = 0, .alternatives = {}};
  if (request_.log_probabilities) {
    LS_ASSIGN_OR_RETURN(token, Describe(pending_, row));
  }
  Deliver(delta_buffer_.Append(std::move(token), vocabulary_.Decode(pending_)));
  if (delta_buffer_.stop_string() != nullptr) {
    finish_reason_ = FinishReason::kStopString;
  } else if (generated_ == request_.max_tokens) {
    finish_reason_ = FinishReason::kMaxTokens;
    Deliver(delta_buffer_.Flush());
  }
  return absl::OkStatus();
}

absl::StatusOr<GeneratedToken> GenerationJob::Describe(int32_t token, absl::Span<const float> row) {
  LS_RETURN_IF_ERROR(log_probabilities_.SetRow(row));
  return GeneratedToken{.token = token,
                        .log_probability = static_cast<float>(log_probabilities_.Of(token)),
                        .alternatives = log_probabilities_.Likeliest(request_.top_alternatives)};
}

void GenerationJob::CountToken(absl::Time now) {
  ++generated_;
  if (generated_ == 1) {
    observer_.OnFirstToken(now - times.submitted);
  } else {
    observer_.OnNextToken(now - last_token_time_);
  }
  last_token_time_ = now;
}

void GenerationJob::Deliver(GenerationDelta delta) {
  if (!delta.bytes.empty() || !delta.tokens.empty()) listener_->OnDelta(std::move(delta));
}

void GenerationJob::Finish(const absl::Status& status, absl::Time now) {
  GenerationSummary summary;
  if (complete()) summary.finish_reason = *finish_reason_;
  if (delta_buffer_.stop_string() != nullptr) summary.stop_string = *delta_buffer_.stop_string();
  summary.prompt_tokens = read_;
  summary.reused_tokens = reused_;
  summary.generated_tokens = generated_;
  summary.timings = times.TimingsAt(now);
  listener_->OnFinished(status, summary);
}

}  // namespace longshort
