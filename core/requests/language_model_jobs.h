// The jobs of a language model's requests, and functions that create them. A job that continues a session owns the
// session's lease until it ends.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/requests/job.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/language_model_requests.h"
#include "core/sampling/sampler.h"
#include "core/sampling/stop_strings.h"
#include "core/session/session_store.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::core {

// Generated output that is not delivered yet: text that may become a stop string, and the tokens that it comes from.
// A token is delivered with the first of its bytes; a token without bytes, with all the bytes before it.
class DeltaBuffer {
 public:
  explicit DeltaBuffer(const std::vector<std::string>& stop_strings) : stop_strings_(stop_strings) {}

  // Adds a token and its bytes. Returns what can be delivered, which may be empty. After the bytes complete a stop
  // string, nothing more is delivered. REQUIRES: stop_string() is null.
  GenerationDelta Append(GeneratedToken token, std::string_view bytes);
  // At the end of the generation: returns everything that was held back.
  GenerationDelta Flush();

  // The completed stop string, or null.
  const std::string* stop_string() const { return stop_strings_.met(); }

 private:
  struct HeldToken {
    GeneratedToken token;
    int64_t due;  // delivered once so many bytes are
  };

  // Adds the tokens that are due when `bytes` are delivered.
  GenerationDelta Deliver(std::string bytes);

  StopStrings stop_strings_;
  std::deque<HeldToken> held_tokens_;
  int64_t appended_bytes_ = 0;
  int64_t delivered_bytes_ = 0;
};

// What generation needs of a model's tokens.
//
// Immutable, so any thread may use it.
struct Vocabulary {
  // `tokenizer` is null for a model without text: then all ids may be sampled, and none stands for bytes. Errors:
  // INVALID_ARGUMENT if the tokenizer has another number of tokens, or has no token that may be sampled.
  static absl::StatusOr<Vocabulary> Make(int64_t size, std::shared_ptr<const models::Tokenizer> tokenizer);

  // The bytes that a token stands for.
  std::string_view Decode(int32_t token) const { return tokenizer ? tokenizer->Decode(token) : std::string_view(); }

  int64_t size = 0;  // V
  SampleableTokens sampleable;
  std::shared_ptr<const models::Tokenizer> tokenizer;
};

// Generates: reads the prompt, then repeatedly samples a token and reads it. The logits of the last prompt token
// give the first generated token; the last generated token is never read.
class GenerationJob final : public Job {
 public:
  // `vocabulary` and `observer` must outlive this. `history`: the session's tokens.
  GenerationJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener, const Vocabulary& vocabulary,
                LanguageModelEngineObserver& observer, SharedTokens history = {});

  const RequestContext& context() const override { return request_.context; }
  int64_t MaxTokens() const override { return stream_.given_end() + request_.max_tokens - 1; }
  int64_t MaxReused() const override;
  absl::Span<const int32_t> Unread() const override;
  bool decoding() const override { return stream_.read() >= stream_.given_end(); }
  int64_t LogitRows(int64_t count) const override;
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) override;
  bool complete() const override { return finish_reason_.has_value(); }
  // Tokens that were not delivered are not part of the session.
  int64_t SessionTokens() const override { return stream_.given_end() + delivered_; }
  bool keeps_partial() const override {
    return request_.session.has_value() && request_.session->keep_partial && delivered_ > 0;
  }
  void Finish(const absl::Status& status, absl::Time now) override;

 protected:
  int64_t OptionBytes() const override;

 private:
  int64_t generated_tokens() const { return stream_.end() - stream_.given_end(); }
  // How many of the prompt's tokens are scored. The first token of a text has no score.
  int64_t ScoredInPrompt() const {
    return request_.prompt_log_probabilities ? stream_.given_end() - 1 - stream_.own_begin() : 0;
  }
  // Scores the prompt's tokens after the `count` that were read.
  absl::Status ScorePrompt(int64_t count, absl::Span<const float> logits);
  // Samples the next token from its row, [V], and delivers what is not held back.
  absl::Status Generate(absl::Span<const float> row, absl::Time now);
  // The sampled token, with its log-probabilities if requested.
  absl::StatusOr<GeneratedToken> Describe(int32_t token, absl::Span<const float> row);
  void CountToken(absl::Time now);
  void Deliver(GenerationDelta delta);

  const GenerationRequest request_;
  const std::shared_ptr<GenerationListener> listener_;
  const Vocabulary& vocabulary_;
  LanguageModelEngineObserver& observer_;
  std::optional<Sampler> sampler_;  // from the first token on: it reads the prompt
  LogProbabilities log_probabilities_;
  DeltaBuffer delta_buffer_;

  std::vector<GeneratedToken> prompt_scores_;
  int64_t delivered_ = 0;  // generated tokens
  absl::Time last_token_time_ = absl::InfiniteFuture();
  std::optional<FinishReason> finish_reason_;
};

// Scores a document: a prefill that needs the logits of every row. The row of token i gives the log-probability of
// token i+1. So the last token need not be read, and a document of one token needs no step.
class ScoringJob final : public Job {
 public:
  // `observer` must outlive this. `history`: the session's tokens.
  ScoringJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener, int64_t vocabulary_size,
             LanguageModelEngineObserver& observer, SharedTokens history = {});

  const RequestContext& context() const override { return request_.context; }
  int64_t MaxTokens() const override { return stream_.end() - 1; }
  int64_t MaxReused() const override { return stream_.read(); }
  absl::Span<const int32_t> Unread() const override { return stream_.Unread().first(MaxTokens() - stream_.read()); }
  bool decoding() const override { return false; }
  int64_t LogitRows(int64_t count) const override { return count; }
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) override;
  bool complete() const override { return stream_.read() == MaxTokens(); }
  int64_t SessionTokens() const override { return stream_.end(); }
  void Finish(const absl::Status& status, absl::Time now) override;

 private:
  const ScoringRequest request_;
  const std::shared_ptr<ScoringListener> listener_;
  const int64_t vocabulary_size_;
  LanguageModelEngineObserver& observer_;
  LogProbabilities log_probabilities_;
  Score score_;  // so far
};

// `vocabulary`, `observer` and `sessions` must outlive the job.
// Errors: as SessionStore::Open; FAILED_PRECONDITION if the session does not hold the expected number of tokens;
// INVALID_ARGUMENT for an empty prompt without a session's tokens.
absl::StatusOr<std::unique_ptr<Job>> MakeJob(GenerationRequest request, std::shared_ptr<GenerationListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions,
                                             const std::shared_ptr<SessionPages>& pages = nullptr);
absl::StatusOr<std::unique_ptr<Job>> MakeJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener,
                                             const Vocabulary& vocabulary, LanguageModelEngineObserver& observer,
                                             SessionStore& sessions,
                                             const std::shared_ptr<SessionPages>& pages = nullptr);

}  // namespace longshort::core
