#include "core/requests/language_model_jobs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::core {
namespace {

// Opens the session that a request of `tokens` refers to; nullopt if it refers to none.
absl::StatusOr<std::optional<SessionStore::Lease>> OpenSession(const RequestContext& context,
                                                               const std::optional<SessionReference>& reference,
                                                               const std::vector<int32_t>& tokens,
                                                               SessionStore& sessions,
                                                               const std::shared_ptr<SessionPages>& pages) {
  if (!reference.has_value()) return std::nullopt;
  const std::optional<int64_t>& expected = reference->expected_tokens;
  const bool must_exist = reference->must_exist || (expected.has_value() && *expected > 0);
  LS_ASSIGN_OR_RETURN(
      SessionStore::Lease session,
      sessions.Open(
          {.client = reference->owner.value_or(context.client), .id = reference->id, .account = context.client},
          must_exist, pages, static_cast<int64_t>(tokens.size())));
  const auto held = static_cast<int64_t>(session.tokens().size());
  if (expected.has_value() && *expected < held && *expected >= session.partial_from().value_or(held)) {
    session.Shorten(*expected);  // what the client has received of a call that ended early
  } else if (expected.has_value() && held != *expected) {
    return absl::FailedPreconditionError(absl::StrCat(
        "session ", reference->id, " holds ", held, " tokens, not the expected ", *expected,
        ": another call continued it, perhaps one whose answer was lost; start a new session with another id"));
  }
  return session;
}

SharedTokens TokensOf(const std::optional<SessionStore::Lease>& session) {
  return session.has_value() ? session->shared_tokens() : SharedTokens();
}

std::unique_ptr<Job> WithSession(std::unique_ptr<Job> job, std::optional<SessionStore::Lease> session,
                                 const std::shared_ptr<SessionPages>& pages) {
  job->parked_rows = ParkedRows(session.has_value() ? session->parked() : std::nullopt, pages);
  if (session.has_value()) job->resources.session.emplace(*std::move(session));
  return job;
}

}  // namespace

absl::StatusOr<Vocabulary> Vocabulary::Make(int64_t size, std::shared_ptr<const models::Tokenizer> tokenizer) {
  if (tokenizer && tokenizer->vocabulary_size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has ", tokenizer->vocabulary_size(), " tokens, the model has ", size));
  }
  auto sampleable = std::make_shared<std::vector<int32_t>>();
  for (int64_t id = 0; id < size; ++id) {
    const auto token = static_cast<int32_t>(id);
    if (!tokenizer || tokenizer->IsProducible(token)) sampleable->push_back(token);
  }
  if (sampleable->empty()) return absl::InvalidArgumentError("the vocabulary has no token that may be sampled");
  return Vocabulary{.size = size, .sampleable = std::move(sampleable), .tokenizer = std::move(tokenizer)};
}

GenerationJob::GenerationJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer, SharedTokens history)
    : Job(TokenStream(std::move(history), std::move(request.prompt))),
      request_(std::move(request)),
      listener_(std::move(listener)),
      vocabulary_(vocabulary),
      observer_(observer),
      delta_buffer_(request_.stop_strings) {}

int64_t GenerationJob::OptionBytes() const {
  const int64_t options = 2 * request_.OptionBytes();  // the sampler and the delta buffer have copies
  return options + ScoredInPrompt() * MemoryOfToken(request_.top_alternatives);
}

int64_t GenerationJob::MaxReused() const {
  const int64_t wanted = request_.prompt_log_probabilities ? stream_.own_begin() : stream_.given_end() - 1;
  return std::max(stream_.read(), wanted);
}

absl::Span<const int32_t> GenerationJob::Unread() const {
  if (complete()) return {};
  return stream_.Unread();
}

int64_t GenerationJob::LogitRows(int64_t count) const {
  if (decoding()) return 1;
  if (request_.prompt_log_probabilities) return count;
  return stream_.read() + count == stream_.given_end() ? 1 : 0;
}

absl::Status GenerationJob::OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) {
  const bool reads_prompt = !decoding();
  if (reads_prompt && request_.prompt_log_probabilities) LS_RETURN_IF_ERROR(ScorePrompt(count, logits));
  stream_.MarkReadUntil(stream_.read() + count);
  if (reads_prompt) {
    if (stream_.read() < stream_.given_end()) return absl::OkStatus();
    times.prefilled = now;
    observer_.OnPrefilled(now - times.started, prompt_tokens());
    if (request_.prompt_log_probabilities) listener_->OnPromptScored(std::move(prompt_scores_));
  }
  return Generate(logits.last(vocabulary_.size), now);
}

absl::Status GenerationJob::ScorePrompt(int64_t count, absl::Span<const float> logits) {
  // The last token has no successor in the prompt.
  const int64_t scored = std::min(count, stream_.given_end() - 1 - stream_.read());
  prompt_scores_.reserve(ScoredInPrompt());
  for (int64_t row = 0; row < scored; ++row) {
    LS_ASSIGN_OR_RETURN(GeneratedToken token, Describe(stream_[stream_.read() + row + 1],
                                                       logits.subspan(row * vocabulary_.size, vocabulary_.size)));
    prompt_scores_.push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status GenerationJob::Generate(absl::Span<const float> row, absl::Time now) {
  if (!sampler_.has_value()) {
    sampler_.emplace(request_.sampling, vocabulary_.sampleable, stream_.all());
  }
  LS_ASSIGN_OR_RETURN(const int32_t sampled, sampler_->Sample(row, stream_.end()));
  const int64_t before = stream_.capacity();
  stream_.Append(sampled);
  if (stream_.capacity() > before) resources.tokens.SetAmount(HeldTokens());
  CountToken(now);
  GeneratedToken token{.token = sampled, .log_probability = 0, .alternatives = {}};
  if (request_.log_probabilities) {
    LS_ASSIGN_OR_RETURN(token, Describe(sampled, row));
  }
  Deliver(delta_buffer_.Append(std::move(token), vocabulary_.Decode(sampled)));
  if (delta_buffer_.stop_string() != nullptr) {
    finish_reason_ = FinishReason::kStopString;
  } else if (generated_tokens() == request_.max_tokens) {
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
  if (generated_tokens() == 1) {
    observer_.OnFirstToken(now - times.submitted);
  } else {
    observer_.OnNextToken(now - last_token_time_);
  }
  last_token_time_ = now;
}

void GenerationJob::Deliver(GenerationDelta delta) {
  delivered_ += static_cast<int64_t>(delta.tokens.size());
  if (request_.session.has_value() && request_.session->keep_partial) delta.session_tokens = SessionTokens();
  if (!delta.bytes.empty() || !delta.tokens.empty()) listener_->OnDelta(std::move(delta));
}

void GenerationJob::Finish(const absl::Status& status, absl::Time now) {
  GenerationSummary summary;
  if (complete()) summary.finish_reason = *finish_reason_;
  if (delta_buffer_.stop_string() != nullptr) summary.stop_string = *delta_buffer_.stop_string();
  summary.prompt_tokens =
      std::clamp(stream_.read(), stream_.given_begin(), stream_.given_end()) - stream_.given_begin();
  summary.reused_tokens = reused_tokens();
  summary.generated_tokens = generated_tokens();
  if (status.ok() && request_.session.has_value()) summary.session_tokens = SessionTokens();
  summary.timings = times.TimingsAt(now);
  listener_->OnFinished(status, summary);
}

ScoringJob::ScoringJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener, int64_t vocabulary_size,
                       LanguageModelEngineObserver& observer, SharedTokens history)
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

absl::StatusOr<std::unique_ptr<Job>> MakeJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions, const std::shared_ptr<SessionPages>& pages) {
  LS_ASSIGN_OR_RETURN(auto session, OpenSession(request.context, request.session, request.prompt, sessions, pages));
  SharedTokens history = TokensOf(session);
  if (history.tokens.empty() && request.prompt.empty()) {
    return absl::InvalidArgumentError("the prompt is empty, and there is no session to continue");
  }
  auto job = std::make_unique<GenerationJob>(std::move(request), std::move(listener), vocabulary, observer,
                                             std::move(history));
  return WithSession(std::move(job), std::move(session), pages);
}

absl::StatusOr<std::unique_ptr<Job>> MakeJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions, const std::shared_ptr<SessionPages>& pages) {
  LS_ASSIGN_OR_RETURN(auto session, OpenSession(request.context, request.session, request.tokens, sessions, pages));
  auto job = std::make_unique<ScoringJob>(std::move(request), std::move(listener), vocabulary.size, observer,
                                          TokensOf(session));
  return WithSession(std::move(job), std::move(session), pages);
}

GenerationDelta DeltaBuffer::Append(GeneratedToken token, std::string_view bytes) {
  held_tokens_.push_back({.token = std::move(token), .due = appended_bytes_ + (bytes.empty() ? 0 : 1)});
  appended_bytes_ += static_cast<int64_t>(bytes.size());
  return Deliver(stop_strings_.Append(bytes));
}

GenerationDelta DeltaBuffer::Flush() { return Deliver(stop_strings_.Flush()); }

GenerationDelta DeltaBuffer::Deliver(std::string bytes) {
  delivered_bytes_ += static_cast<int64_t>(bytes.size());
  GenerationDelta delta{.bytes = std::move(bytes), .tokens = {}};
  while (!held_tokens_.empty() && held_tokens_.front().due <= delivered_bytes_) {
    delta.tokens.push_back(std::move(held_tokens_.front().token));
    held_tokens_.pop_front();
  }
  return delta;
}

}  // namespace longshort::core
