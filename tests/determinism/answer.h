// The answer of a call of any kind, and the difference between two answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/request_context.h"
#include "core/sampling/sampler.h"
#include "core/session/session.h"
#include "models/worker_device.h"
#include "tests/determinism/conversation.h"

namespace longshort {

struct Answer {
  absl::Status status;
  std::vector<core::GeneratedToken> given;      // the scored tokens of those that the call gave, if asked for
  std::vector<core::GeneratedToken> generated;  // before the end, if that was an early one
  std::optional<double> total_log_probability;
};

// Asks, and waits for the answer. `on_delta` is called by the engine's thread.
Answer Ask(core::LanguageModelEngine& engine, Call call, const core::RequestContext& context,
           const std::optional<core::SessionReference>& session = std::nullopt, std::function<void()> on_delta = {});

// Runs a call alone, in an engine without other work, after `history`, which the model reads again. The answer does not
// include the history.
Answer AskAlone(const models::LanguageModelWeights& model, Call call, const std::vector<int32_t>& history,
                const models::WorkerDevice& device = {.threads = 1});

struct Difference {
  // Whether all that can be compared is the same, bit by bit.
  bool identical = true;
  // Of any two log-probabilities or logits; infinite if one is none, or is missing.
  double largest = 0;
  // Index of the first generated token that is another one; nothing from there on is compared.
  std::optional<size_t> first_other_token;
};

// Alternatives are compared by their rank: two that are nearly equal may change places. Of an answer that ended early,
// what there is is compared.
Difference Compare(const Answer& alone, const Answer& mixed);
Difference CompareLogits(absl::Span<const float> alone, absl::Span<const float> mixed);

}  // namespace longshort
