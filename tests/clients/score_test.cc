// `longshort score` of one document, and `tokenize`: what is asked, and what is shown.
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"

namespace longshort::client::score_test {

using testing::HasSubstr;

// The fake model answers each document with `score_`.
class ScoreTest : public ProgramTest {
 protected:
  ScoreTest() {
    server_.score_document = [this](const v1::ScoreTextsRequest& /*request*/) {
      v1::ScoreTextsResponse answer;
      *answer.mutable_score() = score_;
      return answer;
    };
  }

  v1::TextScore score_;
};
using TokenizeTest = ProgramTest;

TEST_F(ScoreTest, AFileIsOneDocumentOfItsVeryBytes) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "longshort_score_test.bin";
  const std::string bytes("caf\xc3\xa9\n\xff\0end", 11);
  std::ofstream(path, std::ios::binary) << bytes;
  ASSERT_EQ(Run({"score", path.string()}), ExitCode::kOk) << error_;
  ASSERT_EQ(server_.document_requests.size(), 1);
  EXPECT_EQ(server_.document_requests.front().input().raw(), bytes);
  std::filesystem::remove(path);
}

TEST_F(ScoreTest, ALineADocumentShowsCountsBitsAndRate) {
  score_.set_token_count(5);
  score_.set_scored_token_count(4);
  score_.set_log_likelihood(-2.772589);
  score_.set_bits_per_byte(1);
  score_.mutable_timings()->set_prefill_seconds(0.01);
  ASSERT_EQ(Run({"score"}, "hello"), ExitCode::kOk) << error_;
  // 5 tokens in 10 ms.
  EXPECT_THAT(output_, HasSubstr("         5          4         -2.7726     1.0000          -        500  -\n"));
}

TEST_F(ScoreTest, JsonIsAResponseADocument) {
  score_.set_token_count(5);
  score_.set_bits_per_byte(2.5);
  ASSERT_EQ(Run({"score", "--json", "--log-probabilities", "--top-alternatives=2"}, "hello"), ExitCode::kOk);
  EXPECT_THAT(output_, testing::StartsWith(R"({"name":"-","scores":[{"log_likelihood":0,"token_count":"5",)"));
  EXPECT_THAT(output_, HasSubstr(R"("bits_per_byte":2.5)"));
  const v1::ScoreTextsOptions& options = server_.document_requests.front().options();
  EXPECT_EQ(options.model().name(), "characters");
  EXPECT_EQ(options.model().version(), 3);
  EXPECT_TRUE(options.token_log_probabilities());
  EXPECT_EQ(options.top_alternatives(), 2);
}

TEST_F(ScoreTest, JsonHasNoTimings) {
  score_.mutable_timings()->set_prefill_seconds(0.5);
  ASSERT_EQ(Run({"score", "--json"}, "a"), ExitCode::kOk);
  EXPECT_THAT(output_, testing::Not(HasSubstr("prefill_seconds")));
  EXPECT_EQ(Run({"score", "--timings"}, "a"), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("did you mean longshort-load"));
}

TEST_F(ScoreTest, AClassifierIsRefusedWithTheCommandThatTakesIt) {
  for (const v1::Model& model : {ReviewsModel(), FlowersModel()}) {
    server_.models = {model};
    EXPECT_EQ(Run({"score"}, "a"), ExitCode::kInvalid);
    EXPECT_THAT(error_, HasSubstr(model.name() + " is a classifier; use \"longshort classify\""));
  }
  EXPECT_TRUE(server_.document_requests.empty());
}

TEST_F(ScoreTest, NoSuchModelIsRefused) {
  server_.models.clear();
  EXPECT_EQ(Run({"score"}, "hello"), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("NOT_FOUND"));
}

TEST_F(TokenizeTest, IdsOnALineOrPiecesALineEach) {
  server_.tokens.add_ids(97);
  server_.tokens.add_ids(2);
  server_.tokens.add_pieces("a");
  server_.tokens.add_pieces("\n");
  ASSERT_EQ(Run({"tokenize"}, "a\n"), ExitCode::kOk);
  EXPECT_EQ(server_.tokenize_request.input().raw(), "a\n");
  EXPECT_EQ(output_, "97 2\n");
  ASSERT_EQ(Run({"tokenize", "--pieces"}, "a\n"), ExitCode::kOk);
  EXPECT_EQ(output_, "    97  \"a\"\n     2  \"\\n\"\n");
}

TEST_F(TokenizeTest, OffsetsAreThePlacesInBytesAndCharacters) {
  for (const int i : {0, 1}) {
    server_.tokens.add_ids(97);
    server_.tokens.add_pieces("a");
    server_.tokens.add_byte_begins(i);
    server_.tokens.add_byte_ends(i + 1);
    server_.tokens.add_character_begins(0);
    server_.tokens.add_character_ends(1);
  }
  ASSERT_EQ(Run({"tokenize", "--offsets"}, "aa"), ExitCode::kOk);
  EXPECT_EQ(output_, "    97       0      1       0      1  \"a\"\n    97       1      2       0      1  \"a\"\n");
  server_.tokens.clear_byte_begins();
  EXPECT_EQ(Run({"tokenize", "--offsets", "--ids"}, "97 97"), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--offsets needs text"));
}

TEST_F(TokenizeTest, PiecesThatCannotBePrintedAreEscaped) {
  for (const char* piece : {"\xc3", "\u00e9", "\x01"}) {
    server_.tokens.add_ids(7);
    server_.tokens.add_pieces(piece);
  }
  ASSERT_EQ(Run({"tokenize", "--pieces"}, "a"), ExitCode::kOk);
  EXPECT_EQ(output_, "     7  \"\\xc3\"\n     7  \"\u00e9\"\n     7  \"\\x01\"\n");
}

}  // namespace longshort::client::score_test
