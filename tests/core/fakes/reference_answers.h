// What the fake model must answer, found without the engine and its pages.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/requests/language_model_jobs.h"
#include "core/sampling/sampler.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_language_model.h"

namespace longshort::core {

// The `count` tokens that are generated behind `history`, the prompt and what came before it.
inline std::vector<int32_t> TokensAfter(const FakeLanguageModel& model, const Vocabulary& vocabulary,
                                        std::vector<int32_t> history, const SamplingOptions& sampling, int64_t count) {
  const auto begin = static_cast<int64_t>(history.size());
  Sampler sampler(sampling, vocabulary.sampleable, history);
  for (int64_t i = 0; i < count; ++i) history.push_back(*sampler.Sample(model.LogitsAfter(history), begin + i));
  return {history.begin() + begin, history.end()};
}

// The raw model's log-probability of history[index], index at least 1.
inline float LogProbabilityOf(const FakeLanguageModel& model, absl::Span<const int32_t> history, int64_t index) {
  const std::vector<float> logits = model.LogitsAfter(history.first(index));
  LogProbabilities log_probabilities;
  EXPECT_TRUE(log_probabilities.SetRow(logits).ok());
  return static_cast<float>(log_probabilities.Of(history[index]));
}

}  // namespace longshort::core
