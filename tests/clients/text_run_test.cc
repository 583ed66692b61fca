// `longshort classify` and `longshort score` of texts: one stream, results in the documents' order.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::text_run_test {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The fake model's likeliest class is the document itself; it takes none that begins with '!'. It answers three
// documents at a time, in the wrong order.
class TextRunTest : public ProgramTest {
 protected:
  TextRunTest() {
    server_.models = {ReviewsModel()};
    server_.documents_in_work = 3;
    server_.score_document = [this](const v1::ScoreTextsRequest& request) {
      v1::ScoreTextsResponse answer;
      const std::string& text = request.input().raw();
      if (text.substr(0, 1) == "!") {
        answer.mutable_error()->set_code(3);
        answer.mutable_error()->set_message("input: it is refused");
      } else {
        *answer.mutable_classification() = Answer(text);
        answer.mutable_classification()->mutable_documents(0)->set_truncated(answer_is_truncated_);
      }
      return answer;
    };
  }

  static v1::TextClassification Answer(const std::string& text) {
    v1::TextClassification answer;
    v1::ClassProbability& entry = *answer.mutable_classification()->add_classes();
    entry.set_label(text);
    entry.set_probability(0.5F);
    answer.add_documents()->set_token_count(static_cast<int64_t>(text.size()));
    return answer;
  }

  TemporaryFolder folder_;
  bool answer_is_truncated_ = false;
};

// gRPC would end the whole stream.
TEST_F(TextRunTest, ADocumentThatIsNoMessageOfTheServersIsItsOwnError) {
  server_.models[0].mutable_limits()->set_message_bytes(40);
  const std::string lines =
      folder_.Write("lines", "a fine film\nof so many words that it is no message at all\nagain\n");
  EXPECT_EQ(Run({"classify", "--json", "--lines", lines}), ExitCode::kInvalid);
  EXPECT_THAT(output_, AllOf(HasSubstr(":1\",\"precision\":\"fp32\",\"classification\""),
                             HasSubstr(":3\",\"precision\":\"fp32\",\"classification\"")));
  EXPECT_THAT(output_, HasSubstr(":2\",\"error\""));
  EXPECT_THAT(output_, HasSubstr("bytes; the server accepts at most 40 (--max-message-bytes)"));
}

// The server reads only its beginning anyway.
TEST_F(TextRunTest, ATruncatedDocumentIsCutToAMessage) {
  server_.models[0].mutable_limits()->set_message_bytes(4096);
  server_.models[0].mutable_classifier()->set_max_documents(2);
  const std::string a = folder_.Write("a", std::string(10'000, 'a')), b = folder_.Write("b", std::string(5'000, 'b'));
  ASSERT_EQ(Run({"classify", "--truncate", "--second", b, a}), ExitCode::kOk) << error_;
  const v1::ScoreTextsRequest& request = server_.document_requests.front();
  EXPECT_EQ(request.input().raw(), std::string(1536, 'a'));
  EXPECT_EQ(request.second_input().raw(), std::string(1536, 'b'));
  EXPECT_LE(request.ByteSizeLong(), 4096);
  EXPECT_EQ(Run({"classify", a}), ExitCode::kInvalid);
}

TEST_F(TextRunTest, OneDocumentThatFailsIsAnObjectToo) {
  EXPECT_EQ(Run({"classify", "--json"}, "!"), ExitCode::kInvalid);
  EXPECT_THAT(output_, HasSubstr("\"error\":{\"code\":3,\"message\":\"input: it is refused\"}"));
}

TEST_F(TextRunTest, HiddenFilesOfFoldersAreCounted) {
  folder_.Write("in/a", "a fine film");
  folder_.Write("in/.hidden.txt", "bytes");
  folder_.Write("in/.git/config", "bytes");
  EXPECT_EQ(Run({"classify", folder_ / "in"}), ExitCode::kOk);
  EXPECT_EQ(error_, "longshort: not read: 1 .*.txt, 1 .git/\n");
  server_.models[0].clear_classifier();
  EXPECT_EQ(Run({"score", folder_ / "in"}), ExitCode::kOk);
  EXPECT_EQ(error_, "longshort: not read: 1 .*.txt, 1 .git/\n");
}

TEST_F(TextRunTest, OneDocumentIsATableOfItsClasses) {
  answer_is_truncated_ = true;
  ASSERT_EQ(Run({"classify", "--truncate", "--top-k=2", "--logits"}, "good"), ExitCode::kOk) << error_;
  EXPECT_EQ(output_, "-  (4 tokens, truncated)\n  good   50.00 %\n");
  ASSERT_EQ(server_.document_requests.size(), 1);
  EXPECT_EQ(server_.document_requests.front().input().raw(), "good");
  EXPECT_FALSE(server_.document_requests.front().has_second_input());
}

TEST_F(TextRunTest, JsonHasTheNameAndTheFieldsOfTheClassification) {
  ASSERT_EQ(Run({"classify", "--json"}, "good"), ExitCode::kOk) << error_;
  EXPECT_THAT(output_,
              StartsWith(R"({"name":"-","precision":"fp32","classification":{"classes":[{"index":0,"label":"good",)"));
  EXPECT_THAT(output_, Not(HasSubstr("logits")));
  EXPECT_THAT(output_, HasSubstr(R"("documents":[{"token_count":"4","truncated":false}])"));
}

TEST_F(TextRunTest, AFolderIsAStreamWithOptionsInItsFirstMessage) {
  for (const char* name : {"d", "a", "c", "b"}) folder_.Write(name, name);
  ASSERT_EQ(Run({"classify", "--truncate", "--top-k=3", "--logits", folder_.path().string()}), ExitCode::kOk) << error_;
  ASSERT_EQ(server_.document_requests.size(), 4);
  const v1::ScoreTextsOptions& options = server_.document_requests.front().options();
  EXPECT_EQ(options.model().name(), "reviews");
  EXPECT_EQ(options.model().version(), 2);
  EXPECT_TRUE(options.truncate());
  EXPECT_EQ(options.top_k(), 3);
  EXPECT_TRUE(options.all_logits());
  EXPECT_FALSE(server_.document_requests.back().has_options());
}

TEST_F(TextRunTest, ResultsComeInTheOrderOfTheLinesWhateverTheOrderOfTheAnswers) {
  std::string lines;
  std::string expected;
  for (int i = 1; i <= 50; ++i) {
    absl::StrAppend(&lines, "text ", i, "\n");
    absl::StrAppend(&expected, "-:", i, "  (", i < 10 ? 6 : 7, " tokens)\n  text ", i, "   50.00 %\n");
  }
  ASSERT_EQ(Run({"classify", "--lines"}, lines), ExitCode::kOk) << error_;
  EXPECT_EQ(output_, expected);
}

TEST_F(TextRunTest, ABadDocumentIsAnErrorBesideItsNameAndTheOthersContinue) {
  // Line 2 is refused by the server, line 3 is no message of it.
  server_.models[0].mutable_limits()->set_message_bytes(20);
  EXPECT_EQ(Run({"classify", "--lines"}, "a\n!\nlonger than twenty bytes\nb\n"), ExitCode::kInvalid);
  EXPECT_THAT(output_, AllOf(HasSubstr("-:1  (1 tokens)"), HasSubstr("-:4  (1 tokens)")));
  EXPECT_EQ(server_.document_requests.size(), 3);
  EXPECT_THAT(error_, HasSubstr("-:2: INVALID_ARGUMENT: input: it is refused\n"));
  EXPECT_THAT(
      error_,
      HasSubstr("-:3: INVALID_ARGUMENT: the document needs a message of 28 bytes; the server accepts at most 20"));
  EXPECT_THAT(error_, EndsWith("longshort: of 4 documents, 2 invalid or not allowed\n"));
}

TEST_F(TextRunTest, WithJsonEachDocumentIsAnObjectWithItsName) {
  EXPECT_EQ(Run({"classify", "--json", "--lines"}, "a\n!\n"), ExitCode::kInvalid);
  EXPECT_THAT(output_, StartsWith("{\"name\":\"-:1\",\"precision\":\"fp32\",\"classification\":{"));
  EXPECT_THAT(output_, EndsWith("{\"name\":\"-:2\",\"error\":{\"code\":3,\"message\":\"input: it is refused\"}}\n"));
}

TEST_F(TextRunTest, TwoFilesAreAPairForAModelThatComparesOrJoinsTwo) {
  const std::string a = folder_.Write("a", "A"), b = folder_.Write("b", "B");
  v1::ClassifierProperties& classifier = *server_.models.front().mutable_classifier();
  for (const int documents : {2, 1}) {
    classifier.set_documents(documents);
    classifier.set_max_documents(2);
    ASSERT_EQ(Run({"classify", "--second", b, a}), ExitCode::kOk) << error_;
    EXPECT_EQ(server_.document_requests.back().input().raw(), "A");
    EXPECT_EQ(server_.document_requests.back().second_input().raw(), "B");
  }
  ASSERT_EQ(Run({"classify", a}), ExitCode::kOk) << error_;
  EXPECT_FALSE(server_.document_requests.back().has_second_input());
  ASSERT_EQ(Run({"classify", "--lines"}, "a\tb\n"), ExitCode::kOk) << error_;
  EXPECT_EQ(server_.document_requests.back().input().raw(), "a\tb");
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{b}, {"--lines"}}) {
    std::vector<std::string> arguments = {"classify", "--second", b, a};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(arguments), ExitCode::kUsage);
    EXPECT_THAT(error_, HasSubstr("joins two documents: give one file and --second=FILE, without --lines"));
  }
}

TEST_F(TextRunTest, PairsMustSuitTheModelAndManyAreForLongshortBatch) {
  const std::string file = folder_.Write("a", "A");
  EXPECT_EQ(Run({"classify", "--second", file, file}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("takes one document"));
  server_.models.front().mutable_classifier()->set_documents(2);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"classify", file}, {"classify", "--lines", file}}) {
    EXPECT_EQ(Run(arguments), ExitCode::kUsage);
    EXPECT_THAT(error_, HasSubstr("compares two documents: give one file and --second=FILE, without --lines. For many "
                                  "pairs use longshort-batch"));
  }
  EXPECT_TRUE(server_.document_requests.empty());
}

TEST_F(TextRunTest, JsonLinesAreForLongshortBatch) {
  for (const char* command : {"classify", "score", "embed"}) {
    EXPECT_EQ(Run({command, "--json-lines"}, "{\"text\":\"a\"}\n"), ExitCode::kUsage);
    EXPECT_THAT(error_, HasSubstr("--json-lines is not an option; did you mean longshort-batch"));
  }
}

TEST_F(TextRunTest, AnswersThatWaitForTheFirstTakeALimitedPlace) {
  server_.keeps_first_document = true;
  server_.documents_in_work = 1;
  std::string lines;
  for (int i = 0; i < 50; ++i) absl::StrAppend(&lines, i, "\n");
  std::thread run([&] { EXPECT_EQ(Run({"classify", "--lines"}, lines), ExitCode::kOk) << error_; });
  // The model's window is 8: the first document and 7 others.
  while (server_.answered_documents < 7) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(server_.answered_documents, 7);
  server_.first_document_may_go.Notify();
  run.join();
  EXPECT_THAT(output_, AllOf(StartsWith("-:1  "), HasSubstr("-:50  ")));
}

TEST_F(TextRunTest, ALineThatCannotBeSentIsShownBeforeTheInputGoesOn) {
  // Nothing was sent, so no answer would bring it forward.
  EXPECT_EQ(Run({"classify", "--lines", "--ids"}, "none\n"), ExitCode::kInvalid);
  EXPECT_THAT(error_, StartsWith("-:1: INVALID_ARGUMENT: --ids: \"none\" is not a token id\n"));
  EXPECT_TRUE(server_.document_requests.empty());
}

TEST_F(TextRunTest, AStreamThatLeavesDocumentsUnansweredIsAnError) {
  server_.documents_in_work = 2;
  server_.first_ends = {grpc::Status::OK};
  EXPECT_EQ(Run({"classify", "--lines"}, "a\nb\nc\n"), ExitCode::kOther);
  EXPECT_THAT(error_, HasSubstr("longshort: 2 documents were answered before the run ended:\n"));
}

TEST_F(TextRunTest, ACallThatAFullServerDidNotTakeIsTriedAgain) {
  server_.ends_at_once = {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full"),
                          grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping")};
  server_.pushback = "1";
  EXPECT_EQ(Run({"classify", "--lines"}, "a\nb\n"), ExitCode::kOk) << error_;
  EXPECT_THAT(output_, HasSubstr("-:2  (1 tokens)"));
}

TEST_F(TextRunTest, LanguageModelsAreRefusedWithTheCommandThatTakesThem) {
  server_.models.front().clear_classifier();
  EXPECT_EQ(Run({"classify"}, "a"), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("reviews is a language model; use \"longshort score\""));
  EXPECT_TRUE(server_.document_requests.empty());
}

TEST_F(TextRunTest, AStreamThatFailsEndsTheRunBehindWhatWasAnswered) {
  server_.documents_in_work = 2;
  server_.first_ends = {grpc::Status(grpc::StatusCode::INTERNAL, "the model failed")};
  EXPECT_EQ(Run({"classify", "--lines"}, "a\nb\nc\n"), ExitCode::kOther);
  EXPECT_THAT(output_, AllOf(HasSubstr("-:2  (1 tokens)"), Not(HasSubstr("-:3"))));
  EXPECT_THAT(error_, HasSubstr("the model failed"));
}

TEST_F(TextRunTest, ARunOutlivesItsServer) {
  server_.documents_in_work = 2;
  server_.first_ends = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping")};
  EXPECT_EQ(Run({"classify", "--lines"}, "a\nb\nc\n"), ExitCode::kOk) << error_;
  for (const char* line : {"-:1  (1 tokens)", "-:2  (1 tokens)", "-:3  (1 tokens)"}) {
    const size_t found = output_.find(line);
    EXPECT_NE(found, std::string::npos) << line;
    EXPECT_EQ(output_.find(line, found + 1), std::string::npos) << line << " is there twice";
  }
}

TEST_F(TextRunTest, AStreamThatFailsBehindTheLastAnswerHasDoneItsWork) {
  server_.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  EXPECT_EQ(Run({"classify", "--lines"}, "a\nb\n"), ExitCode::kOk) << error_;
}

TEST_F(TextRunTest, ADocumentWithTooManyTokensForALanguageModelHasAHint) {
  server_.models.front().clear_classifier();
  std::string message = "number of tokens of input is 9; it must be in [1, 8]";
  server_.score_document = [&](const v1::ScoreTextsRequest& /*request*/) {
    v1::ScoreTextsResponse answer;
    answer.mutable_error()->set_code(3);
    answer.mutable_error()->set_message(message);
    return answer;
  };
  EXPECT_EQ(Run({"score"}, "ninebytes"), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("[1, 8]. Start the server with a larger --max-prompt-tokens, or split the document\n"));
  message += " (more with truncate, which reads the first 8)";
  EXPECT_EQ(Run({"score"}, "ninebytes"), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("reads the first 8)\n"));
}

TEST_F(TextRunTest, ManyFilesOfALanguageModelAreARowEach) {
  server_.models.front().clear_classifier();
  server_.models.front().mutable_limits()->set_message_bytes(100);
  server_.score_document = [](const v1::ScoreTextsRequest& request) {
    v1::ScoreTextsResponse answer;
    answer.mutable_score()->set_token_count(static_cast<int64_t>(request.input().raw().size()));
    answer.mutable_score()->set_log_likelihood(-1.5);
    return answer;
  };
  const std::string first = folder_.Write("a", "12");
  const std::string second = folder_.Write("b", std::string(101, 'x'));
  const std::string third = folder_.Write("c", "12345");
  EXPECT_EQ(Run({"score", folder_.path().string()}), ExitCode::kInvalid);
  EXPECT_THAT(output_, StartsWith("    tokens     scored  log-likelihood"));
  EXPECT_THAT(output_, HasSubstr(absl::StrCat(
                           "         2          0         -1.5000          -          -          -  ", first, "\n")));
  EXPECT_THAT(output_, EndsWith(third + "\n"));
  EXPECT_THAT(error_, HasSubstr(absl::StrCat(second, ": INVALID_ARGUMENT: the document needs a message of 105 bytes")));

  EXPECT_EQ(Run({"score", "--json", first, third}), ExitCode::kOk);
  EXPECT_THAT(output_, HasSubstr(absl::StrCat(
                           "{\"name\":\"", third,
                           "\",\"precision\":\"fp32\",\"scores\":[{\"log_likelihood\":-1.5,\"token_count\":\"5\"")));
  EXPECT_THAT(output_, HasSubstr("\"usage\":{\"prompt_tokens\":\"5\""));
}

}  // namespace longshort::client::text_run_test
