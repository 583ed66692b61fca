// `longshort models`: what is shown of language models and classifiers.
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"

namespace longshort::client::models_test {

using testing::HasSubstr;
using testing::Not;

using ModelsTest = ProgramTest;

TEST_F(ModelsTest, ListIsATableWithARowAModel) {
  ASSERT_EQ(Run({"models"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("NAME        VERSION  ARCHITECTURE    PARAMETERS"));
  EXPECT_THAT(output_, HasSubstr("characters  3        language_model  2650000"));
  ASSERT_EQ(Run({"models", "--json"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr(R"("vocabulary_size":)"));
}

TEST_F(ModelsTest, OneModelIsDescribed) {
  ASSERT_EQ(Run({"models", "--model=characters/3"}), ExitCode::kOk);
  EXPECT_EQ(server_.get_model_request.model().name(), "characters");
  EXPECT_EQ(server_.get_model_request.model().version(), 3);
  EXPECT_THAT(output_, HasSubstr("at most 100 tokens"));
}

TEST_F(ModelsTest, ClassifiersHaveClassesWhereLanguageModelsHaveNone) {
  server_.models.push_back(FlowersModel());
  ASSERT_EQ(Run({"models"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("flowers     1        cvt             800000      fp32       images  3        -"));
  EXPECT_THAT(output_, HasSubstr("text    -        fairseq_bytes"));
}

TEST_F(ModelsTest, OneImageClassifierIsDescribed) {
  server_.models = {FlowersModel()};
  ASSERT_EQ(Run({"models", "--model=flowers"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("3: daisy, rose, tulip\n"));
  EXPECT_THAT(output_, HasSubstr("at most 1000 bytes, 50000000 pixels"));
  EXPECT_THAT(output_, Not(HasSubstr("chunk")));
}

TEST_F(ModelsTest, OneTextClassifierIsDescribed) {
  server_.models = {ReviewsModel()};
  server_.models.front().mutable_classifier()->set_documents(2);
  server_.models.front().mutable_classifier()->clear_labels();
  ASSERT_EQ(Run({"models", "--model=reviews"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("pairs of texts"));
  EXPECT_THAT(output_, HasSubstr("2, unnamed"));
  EXPECT_THAT(output_, HasSubstr("at most 20 tokens"));
}

TEST_F(ModelsTest, OneClassifierHasItsProblemTypeAndWhetherItJoinsPairs) {
  for (const auto& [type, name] :
       {std::pair(v1::PROBLEM_TYPE_REGRESSION, "regression\n"),
        std::pair(v1::PROBLEM_TYPE_MULTI_LABEL_CLASSIFICATION, "multi_label_classification\n"),
        std::pair(v1::PROBLEM_TYPE_UNSPECIFIED, "single_label_classification\n")}) {
    server_.models = {ReviewsModel()};
    server_.models.front().mutable_classifier()->set_problem_type(type);
    server_.models.front().mutable_classifier()->set_max_documents(2);
    ASSERT_EQ(Run({"models", "--model=reviews"}), ExitCode::kOk);
    EXPECT_THAT(output_, HasSubstr(name));
    EXPECT_THAT(output_, HasSubstr("text (trained on) or pairs\n"));
  }
  server_.models.front().mutable_classifier()->set_trained_on_pairs(true);
  ASSERT_EQ(Run({"models", "--model=reviews"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("pairs (trained on) or text\n"));
}

TEST_F(ModelsTest, ModelsThatCouldNotBeLoadedAreNamedOnStandardError) {
  server_.failures.emplace_back().set_reason("model flowers version 2: tensor x is missing");
  for (const char* form : {"--json=false", "--json"}) {
    ASSERT_EQ(Run({"models", form}), ExitCode::kOk);
    EXPECT_THAT(error_, HasSubstr("longshort: not loaded: model flowers version 2: tensor x is missing\n"));
    EXPECT_THAT(output_, Not(HasSubstr("flowers")));
  }
}

TEST_F(ModelsTest, AnEncoderHasNoProblemType) {
  server_.models = {ReviewsModel()};
  server_.models.front().mutable_classifier()->set_classes(0);
  ASSERT_EQ(Run({"models", "--model=reviews"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("none: an encoder without a head"));
  EXPECT_THAT(output_, Not(HasSubstr("problem type")));
}

TEST_F(ModelsTest, OfManyClassesTheFirstFewAreNamed) {
  server_.models = {FlowersModel()};
  for (int i = 3; i < 100; ++i) server_.models.front().mutable_classifier()->add_labels("flower");
  server_.models.front().mutable_classifier()->set_classes(100);
  ASSERT_EQ(Run({"models", "--model=flowers"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr("100: daisy, rose, tulip, "));
  EXPECT_THAT(output_, HasSubstr(", ... (--json lists all)\n"));
}

}  // namespace longshort::client::models_test
