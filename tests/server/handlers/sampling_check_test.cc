#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "server/handlers/generation_plan.h"
#include "tests/base/status_matchers.h"
#include "tests/server/fakes/plain_names.h"

namespace longshort::server::sampling_check_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

absl::StatusOr<core::SamplingOptions> Check(const core::SamplingOptions& sampling) {
  return CheckSampling(sampling, 260, RequestLimits(), kPlainNames);
}

TEST(SamplingCheck, AnErrorHasTheExactValue) {
  core::SamplingOptions sampling;
  sampling.temperature = 0;
  EXPECT_EQ(Check(sampling)->temperature, 0);
  sampling.top_p = 0;
  EXPECT_EQ(RefusalOf(Check(sampling).status()), "nucleus is 0; it must be in (0, 1]");
  sampling.top_p = 1.0000001;
  EXPECT_THAT(RefusalOf(Check(sampling).status()), testing::StartsWith("nucleus is 1.0000001"));
}

TEST(SamplingCheck, AnErrorHasTheBiasAsItWasGiven) {
  core::SamplingOptions sampling;
  sampling.logit_bias = {{7, 100.1F}};
  EXPECT_EQ(RefusalOf(Check(sampling).status()), "bias#7 is 100.1; it must be in [-100, 100]");
}

TEST(SamplingCheck, NotANumberIsOutsideEveryRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::function<void(core::SamplingOptions&)>> fields = {
      [&](core::SamplingOptions& s) { s.temperature = nan; },
      [&](core::SamplingOptions& s) { s.top_p = nan; },
      [&](core::SamplingOptions& s) { s.min_p = nan; },
      [&](core::SamplingOptions& s) { s.repetition_penalty = nan; },
      [&](core::SamplingOptions& s) { s.frequency_penalty = nan; },
      [&](core::SamplingOptions& s) { s.presence_penalty = nan; },
      [&](core::SamplingOptions& s) {
        s.logit_bias = {{1, std::nanf("")}};
      },
  };
  for (const auto& set : fields) {
    core::SamplingOptions sampling;
    set(sampling);
    EXPECT_THAT(RefusalOf(Check(sampling).status()), HasSubstr("nan"));
  }
}

TEST(SamplingCheck, LogitBiasIsSortedAndTopKBeyondTheVocabularyKeepsAll) {
  core::SamplingOptions sampling;
  sampling.logit_bias = {{200, 50.0F}, {7, 1.75F}, {50, 12.5F}};
  sampling.top_k = 260;
  const auto options = Check(sampling);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->logit_bias, ElementsAre(Pair(7, 1.75F), Pair(50, 12.5F), Pair(200, 50.0F)));
  EXPECT_EQ(options->top_k, 0);
}

}  // namespace longshort::server::sampling_check_test
