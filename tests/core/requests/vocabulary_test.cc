#include "core/requests/language_model_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_tokenizer.h"

namespace longshort::core::requests_vocabulary_test {

TEST(Vocabulary, SamplesWhatTheTokenizerCanProduce) {
  const auto vocabulary =
      Vocabulary::Make(5, std::make_shared<FakeTokenizer>(std::vector<std::string>{"", "", "\n", "", "a"}));
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_THAT(*vocabulary->sampleable, testing::ElementsAre(2, 4));
  EXPECT_EQ(vocabulary->Decode(2), "\n");
}

TEST(Vocabulary, WithoutATokenizerSamplesAllAndDecodesNone) {
  const auto vocabulary = Vocabulary::Make(3, nullptr);
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_THAT(*vocabulary->sampleable, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(vocabulary->Decode(2), "");
}

TEST(Vocabulary, RefusesATokenizerOfAnotherModel) {
  const auto vocabulary = Vocabulary::Make(3, std::make_shared<FakeTokenizer>(std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(vocabulary.status(), absl::InvalidArgumentError("the tokenizer has 2 tokens, the model has 3"));
}

TEST(Vocabulary, RefusesATokenizerThatCanProduceNothing) {
  const auto vocabulary = Vocabulary::Make(2, std::make_shared<FakeTokenizer>(std::vector<std::string>{"", ""}));
  EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace longshort::core::requests_vocabulary_test
