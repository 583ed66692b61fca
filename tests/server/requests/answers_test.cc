#include "server/requests/answers.h"

#include <string>

#include "gtest/gtest.h"

namespace longshort {
namespace {

// What a gRPC client takes by default.
constexpr size_t kMostAnswerBytes = size_t{4} << 20;

// The longest there can be: an id beyond 2^21 takes 4 bytes, a character up to 4, once described and once as text.
TEST(RequestLimits, AnAnswerWithAsManyDescribedTokensAsAllowedIsTakenByEveryClient) {
  const std::string character = "\xF0\x9F\x98\x80";
  v1::GenerateResponse answer;
  v1::Completion& completion = *answer.add_completions();
  for (int64_t i = 0; i < RequestLimits().described_tokens; ++i) {
    v1::TokenLogProbability& token = *completion.add_tokens();
    token.set_id((1 << 22) - 1);
    token.set_raw(character);
    token.set_log_probability(-1);
    completion.mutable_text()->append(character);
    completion.mutable_raw()->append(character);
  }
  EXPECT_LT(answer.ByteSizeLong(), kMostAnswerBytes);
}

}  // namespace
}  // namespace longshort
