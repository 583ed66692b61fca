// `longshort generate`: every option reaches its field; text is shown in order and as it arrives.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"

namespace longshort::client::generate_test {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

using GenerateTest = ProgramTest;

v1::GenerateStreamResponse Start(uint64_t seed) {
  v1::GenerateStreamResponse message;
  message.mutable_start()->set_seed(seed);
  return message;
}

v1::GenerateStreamResponse Delta(int index, const std::string& text, const std::string& raw = "") {
  v1::GenerateStreamResponse message;
  message.mutable_delta()->set_index(index);
  message.mutable_delta()->set_text(text);
  message.mutable_delta()->set_raw(raw);
  message.mutable_delta()->set_token_count(static_cast<int64_t>(text.size()));
  return message;
}

v1::GenerateStreamResponse End(int index, v1::FinishReason reason, const std::string& stop = "") {
  v1::GenerateStreamResponse message;
  message.mutable_end()->set_index(index);
  message.mutable_end()->set_finish_reason(reason);
  message.mutable_end()->set_stop(stop);
  message.mutable_end()->mutable_timings()->set_decode_seconds(0.5);
  return message;
}

v1::GenerateStreamResponse Summary(int64_t prompt_tokens, int64_t generated_tokens) {
  v1::GenerateStreamResponse message;
  message.mutable_summary()->mutable_usage()->set_prompt_tokens(prompt_tokens);
  message.mutable_summary()->mutable_usage()->set_generated_tokens(generated_tokens);
  return message;
}

TEST_F(GenerateTest, EveryOptionReachesItsField) {
  ASSERT_EQ(Run({"generate",
                 "--model=characters/3",
                 "--prompt=Once",
                 "--max-tokens=7",
                 "--completions=2",
                 "--session=talk:1",
                 "--session-must-exist",
                 "--stop=.",
                 "--stop=!",
                 "--echo",
                 "--temperature=0",
                 "--top-k=40",
                 "--top-p=0.9",
                 "--min-p=0.1",
                 "--repetition-penalty=1.5",
                 "--frequency-penalty=-1",
                 "--presence-penalty=0.25",
                 "--logit-bias=65:-100",
                 "--logit-bias=66:2.5",
                 "--seed=18446744073709551615",
                 "--log-probabilities",
                 "--top-alternatives=4",
                 "--raw"}),
            ExitCode::kOk)
      << error_;
  const v1::GenerateRequest& request = server_.generate_request;
  EXPECT_EQ(request.model().name(), "characters");
  EXPECT_EQ(request.model().version(), 3);
  EXPECT_EQ(request.prompt().raw(), "Once");
  EXPECT_EQ(request.max_tokens(), 7);
  EXPECT_EQ(request.completions(), 2);
  EXPECT_EQ(request.session().id(), "talk:1");
  EXPECT_TRUE(request.session().must_exist());
  EXPECT_TRUE(request.keep_partial());
  EXPECT_THAT(request.stop(), ElementsAre(".", "!"));
  EXPECT_TRUE(request.echo());
  EXPECT_TRUE(request.token_log_probabilities());
  EXPECT_EQ(request.top_alternatives(), 4);
  EXPECT_TRUE(request.return_raw());

  const v1::Sampling& sampling = request.sampling();
  EXPECT_TRUE(sampling.has_temperature());
  EXPECT_EQ(sampling.temperature(), 0);
  EXPECT_EQ(sampling.top_k(), 40);
  EXPECT_EQ(sampling.top_p(), 0.9);
  EXPECT_EQ(sampling.min_p(), 0.1);
  EXPECT_EQ(sampling.repetition_penalty(), 1.5);
  EXPECT_EQ(sampling.frequency_penalty(), -1);
  EXPECT_EQ(sampling.presence_penalty(), 0.25);
  EXPECT_EQ(sampling.logit_bias_size(), 2);
  EXPECT_EQ(sampling.logit_bias().at(65), -100);
  EXPECT_EQ(sampling.logit_bias().at(66), 2.5);
  EXPECT_EQ(sampling.seed(), 18446744073709551615U);
}

TEST_F(GenerateTest, ASessionIsNamedOrNotThere) {
  EXPECT_EQ(Run({"generate", "--prompt=x", "--session="}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--session is empty"));
  EXPECT_EQ(Run({"generate", "--prompt=x", "--session-must-exist"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--session-must-exist needs --session"));
  EXPECT_EQ(Run({"generate", "--prompt=x"}), ExitCode::kOk) << error_;
  EXPECT_FALSE(server_.generate_request.has_session());
  EXPECT_FALSE(server_.generate_request.keep_partial());
}

TEST_F(GenerateTest, AnInterruptedStreamInASessionIsKeptUnlessTheUserSaysOtherwise) {
  ASSERT_EQ(Run({"generate", "--prompt=x", "--session=talk"}), ExitCode::kOk) << error_;
  EXPECT_TRUE(server_.generate_request.keep_partial());
  for (const char* option : {"--no-keep-partial", "--no-stream"}) {
    ASSERT_EQ(Run({"generate", "--prompt=x", "--session=talk", option}), ExitCode::kOk) << error_;
    EXPECT_EQ(server_.generate_request.session().id(), "talk");
    EXPECT_FALSE(server_.generate_request.keep_partial()) << option;
  }
  EXPECT_EQ(Run({"generate", "--prompt=x", "--no-keep-partial"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--no-keep-partial needs --session"));
}

TEST_F(GenerateTest, UnsetFlagsLeaveTheServersDefaults) {
  ASSERT_EQ(Run({"generate"}, "from standard input\n"), ExitCode::kOk) << error_;
  const v1::GenerateRequest& request = server_.generate_request;
  EXPECT_EQ(request.prompt().raw(), "from standard input\n");
  EXPECT_EQ(request.max_tokens(), 0);
  EXPECT_FALSE(request.sampling().has_temperature());
  EXPECT_FALSE(request.sampling().has_top_p());
  EXPECT_FALSE(request.sampling().has_repetition_penalty());
  EXPECT_FALSE(request.sampling().has_seed());
}

TEST_F(GenerateTest, PromptMayBeTokenIds) {
  ASSERT_EQ(Run({"generate", "--ids"}, "7 8,9\n"), ExitCode::kOk) << error_;
  EXPECT_THAT(server_.generate_request.prompt().ids().ids(), ElementsAre(7, 8, 9));
  EXPECT_EQ(Run({"generate", "--ids", "--prompt=7 x"}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("\"x\""));
}

TEST_F(GenerateTest, OneCompletionIsItsTextAndNothingElse) {
  server_.stream = {Start(11), Delta(0, "Gr\u00fc"), Delta(0, "n"), End(0, v1::FINISH_REASON_STOP, "."), Summary(4, 5)};
  ASSERT_EQ(Run({"generate", "--prompt=a"}), ExitCode::kOk);
  EXPECT_EQ(output_, "Gr\u00fcn");
  // 5 tokens in half a second.
  EXPECT_EQ(error_, "\n[stop \".\", 4 tokens read, 5 generated at 10.0 a second, seed 11]\n");
}

TEST_F(GenerateTest, TheTextOfAModelWithoutVocabularyIsItsIds) {
  v1::GenerateStreamResponse two = Delta(0, ""), one = Delta(0, "");
  for (const int32_t id : {17, 4}) two.mutable_delta()->add_tokens()->set_id(id);
  one.mutable_delta()->add_tokens()->set_id(205);
  server_.stream = {Start(1), two, one, End(0, v1::FINISH_REASON_LENGTH), Summary(1, 3)};
  ASSERT_EQ(Run({"generate", "--ids", "--prompt=1"}), ExitCode::kOk);
  EXPECT_EQ(output_, "17 4 205");
}

TEST_F(GenerateTest, RawWritesTheBytesBehindTheText) {
  server_.stream = {Delta(0, "\uFFFD", "\xff"), End(0, v1::FINISH_REASON_LENGTH)};
  ASSERT_EQ(Run({"generate", "--prompt=a", "--raw"}), ExitCode::kOk);
  EXPECT_EQ(output_, "\xff");
}

TEST_F(GenerateTest, SeveralCompletionsAreShownOneAfterAnother) {
  server_.stream = {Delta(0, "a"), Delta(1, "x"),
                    Delta(1, "y"), End(1, v1::FINISH_REASON_LENGTH),
                    Delta(0, "b"), End(0, v1::FINISH_REASON_LENGTH)};
  ASSERT_EQ(Run({"generate", "--prompt=a", "--completions=2"}), ExitCode::kOk);
  EXPECT_EQ(output_, "--- 0 ---\nab\n--- 1 ---\nxy\n");
}

TEST_F(GenerateTest, HoweverManyCompletionsAreAskedForTheServerAnswers) {
  server_.status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "completions is too many");
  EXPECT_EQ(Run({"generate", "--prompt=a", "--completions=2000000000"}), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("completions is too many"));
}

TEST_F(GenerateTest, TextThatArrivedIsShownEvenIfTheStreamFails) {
  server_.stream = {Delta(0, "half a sen")};
  server_.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  EXPECT_EQ(Run({"generate", "--prompt=a"}), ExitCode::kUnavailable);
  EXPECT_EQ(output_, "half a sen");
}

TEST_F(GenerateTest, LogProbabilitiesAreATokenALine) {
  v1::GenerateStreamResponse message = Delta(0, "e");
  v1::TokenLogProbability& token = *message.mutable_delta()->add_tokens();
  token.set_id(101);
  token.set_raw("e");
  token.set_log_probability(-0.5);
  v1::TokenLogProbability& alternative = *token.add_alternatives();
  alternative.set_id(10);
  alternative.set_raw("\n");
  alternative.set_log_probability(-1.25);
  server_.stream = {message, End(0, v1::FINISH_REASON_LENGTH)};
  ASSERT_EQ(Run({"generate", "--prompt=a", "--log-probabilities"}), ExitCode::kOk);
  EXPECT_EQ(output_, "  -0.5000    101  \"e\"\n      -1.2500     10  \"\\n\"\n");
}

TEST_F(GenerateTest, JsonIsAMessageALineWithTheFieldNamesOfTheProto) {
  server_.stream = {Delta(0, "a\n"), End(0, v1::FINISH_REASON_LENGTH), Summary(4, 2)};
  ASSERT_EQ(Run({"--json", "generate", "--prompt=a"}), ExitCode::kOk);
  EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 3);
  EXPECT_THAT(output_, testing::StartsWith(R"({"delta":{"index":0,"text":"a\n",)"));
  EXPECT_THAT(output_, HasSubstr(R"("token_count":"2")"));
  EXPECT_THAT(output_, HasSubstr(R"("finish_reason":"FINISH_REASON_LENGTH")"));
  EXPECT_THAT(
      output_,
      EndsWith(
          "{\"summary\":{\"usage\":{\"prompt_tokens\":\"4\",\"generated_tokens\":\"2\",\"cached_tokens\":\"0\"}}}\n"));
  EXPECT_EQ(error_, "");
}

TEST_F(GenerateTest, NoStreamAsksForTheWholeAnswer) {
  v1::Completion& completion = *server_.generation.add_completions();
  completion.set_text("all of it");
  completion.set_finish_reason(v1::FINISH_REASON_LENGTH);
  server_.generation.set_seed(12);
  ASSERT_EQ(Run({"generate", "--prompt=a", "--no-stream"}), ExitCode::kOk);
  EXPECT_EQ(output_, "all of it");
  EXPECT_THAT(error_, HasSubstr("seed 12"));
  ASSERT_EQ(Run({"generate", "--prompt=a", "--no-stream", "--json"}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr(R"("text":"all of it")"));
}

}  // namespace longshort::client::generate_test
