#include "tests/determinism/conversation.h"

#include <algorithm>
#include <utility>

#include "tests/determinism/random_choice.h"

namespace longshort {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kSharedTexts = 5;
constexpr int64_t kSharedTokens = 300;
// Of some: so much that what a sequence lost need not be read again from its first token (layers x (M + L)).
constexpr int64_t kLongSharedTokens = 1500;

Tokens RandomTokens(Random& random, int64_t count, const models::LanguageModelInfo& info) {
  Tokens tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(Below(random, info.vocabulary_size));
  return tokens;
}

// A beginning of one of the shared texts and something new, or only that.
Tokens RandomPrompt(Random& random, const std::vector<Tokens>& shared, const models::LanguageModelInfo& info) {
  Tokens prompt;
  if (Chance(random, 0.75)) {
    const Tokens& text = shared[Below(random, kSharedTexts)];
    prompt.assign(text.begin(),
                  text.begin() + Between(random, 1, Chance(random, 0.15) ? kLongSharedTokens : kSharedTokens));
  }
  const Tokens rest = RandomTokens(random, Between(random, 1, 150), info);
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  return prompt;
}

// At most one of the options that keep tokens, as most clients have it, and now and then penalties. Temperatures from
// 0.5 on: half of one doubles the differences of logits.
core::SamplingOptions RandomSampling(Random& random, const models::LanguageModelInfo& info) {
  core::SamplingOptions sampling;
  sampling.seed = random();
  if (Chance(random, 0.4)) {
    sampling.temperature = 0;
  } else {
    sampling.temperature = 0.5 + Fraction(random);
    const int64_t keep = Below(random, 4);
    if (keep == 1) sampling.top_k = Between(random, 2, 20);
    if (keep == 2) sampling.top_p = 0.5 + 0.4 * Fraction(random);
    if (keep == 3) sampling.min_p = 0.2 * Fraction(random);
  }
  if (Chance(random, 0.3)) sampling.repetition_penalty = 0.8 + 0.6 * Fraction(random);
  if (Chance(random, 0.3)) sampling.frequency_penalty = 0.2 * Fraction(random);
  if (Chance(random, 0.3)) sampling.presence_penalty = 0.5 * Fraction(random);
  if (Chance(random, 0.2)) sampling.logit_bias = {{static_cast<int32_t>(Below(random, info.vocabulary_size)), 1.0f}};
  return sampling;
}

Call RandomCall(Random& random, Tokens tokens, const models::LanguageModelInfo& info) {
  const int64_t top_alternatives = Below(random, 4);
  if (Chance(random, 0.3)) {
    core::ScoringRequest request;
    request.tokens = std::move(tokens);
    request.log_probabilities = true;
    request.top_alternatives = top_alternatives;
    return request;
  }
  core::GenerationRequest request;
  request.prompt = std::move(tokens);
  request.max_tokens = Chance(random, 0.1) ? Between(random, 100, 200) : Between(random, 1, 40);
  request.sampling = RandomSampling(random, info);
  request.log_probabilities = true;
  request.top_alternatives = top_alternatives;
  request.prompt_log_probabilities = Chance(random, 0.25);
  return request;
}

}  // namespace

std::vector<Conversation> RandomConversations(const std::string& model, const models::LanguageModelInfo& info,
                                              int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<Tokens> shared;
  for (int64_t text = 0; text < kSharedTexts; ++text) {
    shared.push_back(RandomTokens(random, kLongSharedTokens, info));
  }
  std::vector<Conversation> conversations(count);
  for (Conversation& conversation : conversations) {
    conversation.model = model;
    conversation.in_session = Chance(random, 0.35);
    conversation.calls.push_back(RandomCall(random, RandomPrompt(random, shared, info), info));
    const int64_t more = conversation.in_session ? Between(random, 1, 3) : 0;
    for (int64_t i = 0; i < more; ++i) {
      conversation.calls.push_back(RandomCall(random, RandomTokens(random, Between(random, 1, 60), info), info));
    }
  }
  return conversations;
}

const std::vector<int32_t>& GivenTokens(const Call& call) {
  if (const auto* scoring = std::get_if<core::ScoringRequest>(&call)) return scoring->tokens;
  return std::get<core::GenerationRequest>(call).prompt;
}

std::string KindOf(const Call& call) {
  const auto* generation = std::get_if<core::GenerationRequest>(&call);
  if (generation == nullptr) return "score";
  return generation->sampling.temperature > 0 ? "generate seeded" : "generate greedy";
}

}  // namespace longshort
