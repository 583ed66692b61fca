// Scores a document: a prefill that wants the logits of every row.
#pragma once

#include <cstdint>
#include <memory>

#include "core/engine/engine.h"
#include "core/engine/job.h"
#include "core/sampling/log_probabilities.h"

namespace longshort {

// The row of token i gives the log-probability of token i+1, so the last token need not be read at all, and a document
// of one token needs no step.
class ScoringJob final : public Job {
 public:
  // `observer` must outlive this.
  ScoringJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener, int64_t vocabulary_size,
             EngineObserver& observer);

  const RequestContext& context() const override { return request_.context; }
  int64_t prompt_tokens() const override { return static_cast<int64_t>(request_.tokens.size()); }
  int64_t MostTokens() const override { return prompt_tokens() - 1; }
  int64_t MostReused() const override { return 0; }
  void OnReused(int64_t) override {}
  absl::Span<const int32_t> Unread() const override;
  bool decoding() const override { return false; }
  int64_t LogitRows(int64_t count) const override { return count; }
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) override;
  bool complete() const override { return score_.scored_tokens == MostTokens(); }
  void Finish(const absl::Status& status, absl::Time now) override;

 private:
  const ScoringRequest request_;
  const std::shared_ptr<ScoringListener> listener_;
  const int64_t vocabulary_size_;
  EngineObserver& observer_;
  LogProbabilities log_probabilities_;
  Score score_;  // so far; scored_tokens is also how many were read
};

}  // namespace longshort
