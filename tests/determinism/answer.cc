#include "tests/determinism/answer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "core/generation/continuous_batching_engine.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/recording_listeners.h"

namespace longshort {
namespace {

Answer AskToGenerate(core::LanguageModelEngine& engine, core::GenerationRequest request,
                     std::function<void()> on_delta) {
  const auto listener = std::make_shared<core::RecordingGenerationListener>();
  listener->on_delta = std::move(on_delta);
  Answer answer{.status = engine.Generate(std::move(request), listener),
                .given = {},
                .generated = {},
                .total_log_probability = std::nullopt};
  if (!answer.status.ok()) return answer;
  EXPECT_TRUE(listener->end.Wait()) << "a generation has not ended within a minute";
  answer.status = listener->status;
  answer.given = std::move(listener->prompt).value_or(std::vector<core::GeneratedToken>());
  answer.generated = std::move(listener->generated);
  return answer;
}

Answer AskToScore(core::LanguageModelEngine& engine, core::ScoringRequest request) {
  const auto listener = std::make_shared<core::RecordingScoringListener>();
  Answer answer{.status = engine.Score(std::move(request), listener),
                .given = {},
                .generated = {},
                .total_log_probability = std::nullopt};
  if (!answer.status.ok()) return answer;
  EXPECT_TRUE(listener->end.Wait()) << "a score has not come within a minute";
  answer.status = listener->score.status();
  if (!answer.status.ok()) return answer;
  answer.given = std::move(listener->score->tokens);
  answer.total_log_probability = listener->score->total_log_probability;
  return answer;
}

template <typename Number>
void CompareNumbers(Number alone, Number mixed, Difference& difference) {
  using Bytes = std::array<unsigned char, sizeof(Number)>;
  difference.identical &= std::bit_cast<Bytes>(alone) == std::bit_cast<Bytes>(mixed);
  const double distance = std::abs(static_cast<double>(alone) - static_cast<double>(mixed));
  difference.largest =
      std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(difference.largest, distance);
}

void Mismatch(Difference& difference) {
  difference.identical = false;
  difference.largest = std::numeric_limits<double>::infinity();
}

void CompareToken(const core::GeneratedToken& alone, const core::GeneratedToken& mixed, Difference& difference) {
  CompareNumbers(alone.log_probability, mixed.log_probability, difference);
  if (alone.alternatives.size() != mixed.alternatives.size()) return Mismatch(difference);
  for (size_t rank = 0; rank < alone.alternatives.size(); ++rank) {
    CompareNumbers(alone.alternatives[rank].log_probability, mixed.alternatives[rank].log_probability, difference);
    difference.identical &= alone.alternatives[rank].token == mixed.alternatives[rank].token;
  }
}

}  // namespace

Answer Ask(core::LanguageModelEngine& engine, Call call, const core::RequestContext& context,
           const std::optional<core::SessionReference>& session, std::function<void()> on_delta) {
  if (auto* scoring = std::get_if<core::ScoringRequest>(&call)) {
    scoring->context = context;
    scoring->session = session;
    return AskToScore(engine, std::move(*scoring));
  }
  auto& generation = std::get<core::GenerationRequest>(call);
  generation.context = context;
  generation.session = session;
  return AskToGenerate(engine, std::move(generation), std::move(on_delta));
}

Answer AskAlone(const models::LanguageModelWeights& model, Call call, const std::vector<int32_t>& history,
                const models::WorkerDevice& device) {
  const RealClock clock;
  const auto engine = core::ContinuousBatchingEngine::Create(model, nullptr, nullptr, clock,
                                                             {.step_loop = {.max_streams = 1}, .workers = {device}})
                          .value();
  const size_t scored = GivenTokens(call).size() - (history.empty() ? 1 : 0);
  std::visit(
      [&](auto& request) {
        auto& tokens = [&]() -> std::vector<int32_t>& {
          if constexpr (std::is_same_v<std::decay_t<decltype(request)>, core::ScoringRequest>) {
            return request.tokens;
          } else {
            return request.prompt;
          }
        }();
        tokens.insert(tokens.begin(), history.begin(), history.end());
      },
      call);
  Answer answer = Ask(*engine, std::move(call), {});
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  if (answer.given.size() > scored) answer.given.erase(answer.given.begin(), answer.given.end() - scored);
  if (!history.empty()) answer.total_log_probability.reset();  // it is of the history, too
  return answer;
}

Difference Compare(const Answer& alone, const Answer& mixed) {
  Difference difference;
  const bool whole = mixed.status.ok();
  if (whole || !mixed.given.empty()) {
    if (alone.given.size() != mixed.given.size()) Mismatch(difference);
    for (size_t i = 0; i < std::min(alone.given.size(), mixed.given.size()); ++i) {
      if (alone.given[i].token != mixed.given[i].token) Mismatch(difference);
      CompareToken(alone.given[i], mixed.given[i], difference);
    }
  }
  if (whole && alone.total_log_probability.has_value()) {
    // Of the mean: the sum has the differences of all tokens.
    const double tokens = std::max<double>(1, static_cast<double>(alone.given.size()));
    difference.identical &= alone.total_log_probability == mixed.total_log_probability;
    CompareNumbers(*alone.total_log_probability / tokens, mixed.total_log_probability.value_or(NAN) / tokens,
                   difference);
  }
  for (size_t i = 0; i < std::min(alone.generated.size(), mixed.generated.size()); ++i) {
    if (alone.generated[i].token != mixed.generated[i].token) {
      difference.identical = false;
      difference.first_other_token = i;
      return difference;
    }
    CompareToken(alone.generated[i], mixed.generated[i], difference);
  }
  if (mixed.generated.size() > alone.generated.size()) Mismatch(difference);
  if (whole && mixed.generated.size() != alone.generated.size()) Mismatch(difference);
  return difference;
}

Difference CompareLogits(absl::Span<const float> alone, absl::Span<const float> mixed) {
  Difference difference;
  if (alone.size() != mixed.size()) Mismatch(difference);
  for (size_t i = 0; i < std::min(alone.size(), mixed.size()); ++i) CompareNumbers(alone[i], mixed[i], difference);
  return difference;
}

}  // namespace longshort
