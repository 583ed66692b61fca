// Scores a document: a prefill that wants the logits of every row.
#pragma once

#include <cstdint>
#include <memory>

#include "core/requests/job.h"
#include "core/requests/language_model_engine.h"
#include "core/sampling/log_probabilities.h"

namespace longshort {

// The row of token i gives the log-probability of token i+1, so the last token need not be read at all, and a document
// of one token needs no step.
class ScoringJob final : public Job {
 public:
  // `observer` must outlive this. `history`: the session's tokens.
  ScoringJob(ScoringRequest request, std::shared_ptr<ScoringListener> listener, int64_t vocabulary_size,
             LanguageModelEngineObserver& observer, std::vector<int32_t> history = {});

  const RequestContext& context() const override { return request_.context; }
  int64_t MostTokens() const override { return stream_.end() - 1; }
  int64_t MostReused() const override { return stream_.read(); }
  absl::Span<const int32_t> Unread() const override { return stream_.Unread().first(MostTokens() - stream_.read()); }
  bool decoding() const override { return false; }
  int64_t LogitRows(int64_t count) const override { return count; }
  absl::Status OnRead(int64_t count, absl::Span<const float> logits, absl::Time now) override;
  bool complete() const override { return stream_.read() == MostTokens(); }
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

}  // namespace longshort
