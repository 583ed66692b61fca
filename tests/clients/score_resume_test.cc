// `longshort score --resume`: a file of answers that a later run goes on with.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cpp/answer_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"
#include "tests/clients/temporary_folder.h"

namespace longshort {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// The fake model's likelihood tells the document's length; it takes none that begins with '!'.
class ScoreResumeTest : public ProgramTest {
 protected:
  ScoreResumeTest() {
    server_.models.front().set_fingerprint("f1");
    server_.models.front().set_precision("fp32");
    server_.score_document = [](const v1::ScoreTextsRequest& request) {
      v1::ScoreTextsResponse answer;
      const auto bytes = static_cast<int64_t>(request.input().raw().size());
      if (request.input().raw().substr(0, 1) == "!") {
        answer.mutable_error()->set_code(3);
        answer.mutable_error()->set_message("it is refused");
        return answer;
      }
      answer.mutable_score()->set_log_likelihood(static_cast<double>(-bytes));
      answer.mutable_score()->set_token_count(bytes);
      answer.mutable_model()->set_name("characters");
      answer.mutable_model()->set_version(3);
      return answer;
    };
  }

  ExitCode Score(const std::string& input) { return Run({"score", "--json-lines", "--resume", out_}, input); }

  std::string File() const {
    std::ifstream file(out_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& bytes) const { std::ofstream(out_, std::ios::binary) << bytes; }

  // A line of `name`, a document of so many bytes.
  static std::string Line(const std::string& name, int64_t bytes) {
    return absl::StrCat(
        R"({"name":")", name, R"(","fingerprint":"f1","precision":"fp32","scores":[{"log_likelihood":)", -bytes,
        R"(,"token_count":")", bytes, R"(","scored_token_count":"0"}],"model":{"name":"characters","version":"3"},)",
        R"("usage":{"prompt_tokens":")", bytes, R"(","generated_tokens":"0","cached_tokens":"0"}})", "\n");
  }

  // Expects that the run is refused with these words, that nothing was asked, and that the file is as it was.
  void ExpectRefused(const std::string& input, const std::string& words) {
    const std::string before = File();
    server_.document_requests.clear();
    EXPECT_EQ(Score(input), ExitCode::kUsage);
    EXPECT_THAT(error_, HasSubstr(words));
    EXPECT_THAT(server_.document_requests, IsEmpty());
    EXPECT_EQ(File(), before);
  }

  TemporaryFolder folder_;
  const std::string out_ = folder_ / "out.jsonl";
  // Two have the same name, and the last has none.
  const std::string documents_ =
      "{\"text\":\"12\",\"name\":\"same\"}\n{\"text\":\"123\",\"name\":\"same\"}\n{\"text\":\"1\"}\n";
  const std::string answers_ = Line("same", 2) + Line("same", 3) + Line("-:3", 1);
};

TEST_F(ScoreResumeTest, TheFileIsMadeAndHasALineADocument) {
  ASSERT_EQ(Score(documents_), ExitCode::kOk) << error_;
  EXPECT_EQ(File(), answers_);
  EXPECT_EQ(output_, "");
  EXPECT_EQ(error_, "");
}

// As a process that was killed, or a full disk, may have left it.
TEST_F(ScoreResumeTest, WhereverTheFileWasCutTheRestIsWrittenBehindItsWholeLines) {
  for (size_t kept = 0; kept <= answers_.size(); ++kept) {
    Write(answers_.substr(0, kept));
    server_.document_requests.clear();
    ASSERT_EQ(Score(documents_), ExitCode::kOk) << error_;
    ASSERT_EQ(File(), answers_) << "cut behind " << kept << " bytes";
    const auto lines = std::count(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(kept), '\n');
    EXPECT_THAT(server_.document_requests, SizeIs(3 - lines));
    if (kept == 10) {
      EXPECT_EQ(error_,
                absl::StrCat("longshort: the last line of ", out_, " was not whole: its 10 bytes were cut off\n"));
    }
  }
  EXPECT_THAT(error_, HasSubstr("every document had its line there already"));
}

TEST_F(ScoreResumeTest, AFileOfOtherDocumentsIsRefusedAndLeftAsItIs) {
  Write(answers_ + "{\"name");
  ExpectRefused("{\"text\":\"12\",\"name\":\"same\"}\n{\"text\":\"123\",\"name\":\"other\"}\n",
                "out.jsonl:2: it is about 'same'; in the input this document is 'other'");
  ExpectRefused("{\"text\":\"12\",\"name\":\"same\"}\n",
                "out.jsonl:2: it is about 'same'; the input has only 1 document\n");
  ExpectRefused("{\"text\":\"12345\",\"name\":\"same\"}\n",
                "out.jsonl:1: it is of a document of 2 bytes; in the input 'same' has 5");
}

TEST_F(ScoreResumeTest, AFileOfAnotherModelIsRefused) {
  Write(answers_);
  server_.models.front().set_version(4);
  ExpectRefused(documents_, "out.jsonl:1: it is of the model characters/3; this run is of characters/4");
  // As where the files of a version were replaced.
  server_.models.front().set_version(3);
  server_.models.front().set_fingerprint("f2");
  ExpectRefused(documents_,
                "out.jsonl:1: it is of a model with the fingerprint f1; that of this run, characters/3, has f2");
  server_.models.front().set_fingerprint("f1");
  server_.models.front().set_precision("bf16");
  ExpectRefused(documents_,
                "out.jsonl:1: it is of a model in the precision fp32; that of this run, characters/3, has bf16");
  server_.models.front().set_precision("fp32");
  EXPECT_EQ(Score(documents_), ExitCode::kOk);
}

TEST_F(ScoreResumeTest, AFileOfSomethingElseIsRefused) {
  Write(Line("same", 2) + "# my notes\n");
  ExpectRefused(documents_, "out.jsonl:2: '# my notes' is no answer of longshort score --json");
  Write("\n");
  ExpectRefused(documents_, "out.jsonl:1: '' is no answer");
  EXPECT_EQ(Run({"score", "--lines", "--resume", folder_.path().string()}, ""), ExitCode::kUsage);
  EXPECT_EQ(Run({"score", "--lines", "--resume", "/dev/null"}, ""), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("/dev/null: it is no regular file"));
}

TEST_F(ScoreResumeTest, OtherProgramsMayHaveWrittenTheLines) {
  Write("{ \"usage\": {}, \"scores\": [{\"token_count\": 2}], \"name\": \"s\\u0061me\" }\n");
  ASSERT_EQ(Score(documents_), ExitCode::kOk) << error_;
  EXPECT_THAT(File(), EndsWith(Line("same", 3) + Line("-:3", 1)));
}

TEST_F(ScoreResumeTest, TheFileIsNoDocumentOfItsOwn) {
  Write("");
  folder_.Write("a", "A");
  EXPECT_EQ(Run({"score", "--resume", out_, folder_.path().string()}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("out.jsonl is one of the documents, too"));
}

TEST_F(ScoreResumeTest, TwoRunsDoNotWriteOneFile) {
  const absl::StatusOr<std::unique_ptr<AnswerFile>> other = AnswerFile::Open(out_);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(Score(documents_), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("out.jsonl: another run writes it"));
  EXPECT_EQ(File(), "");
}

TEST_F(ScoreResumeTest, WhatFailedInAnEarlierRunCountsInTheEnd) {
  const std::string input = "{\"text\":\"!\"}\n" + documents_;
  EXPECT_EQ(Score(input), ExitCode::kRefused);
  const std::string whole = File();
  EXPECT_THAT(whole, HasSubstr("{\"name\":\"-:1\",\"error\":{\"code\":3,\"message\":\"it is refused\"}}\n"));
  for (const size_t kept : {whole.size(), whole.size() - 1}) {
    Write(whole.substr(0, kept));
    EXPECT_EQ(Score(input), ExitCode::kRefused);
    EXPECT_THAT(error_, HasSubstr("longshort: of 4 documents, 1 refused\n"));
    EXPECT_EQ(File(), whole);
  }
}

TEST_F(ScoreResumeTest, OneFileIsADocumentToo) {
  const std::string document = folder_.Write("a", "1234");
  ASSERT_EQ(Run({"score", "--resume", out_, document}), ExitCode::kOk) << error_;
  EXPECT_EQ(File(), Line(document, 4));
  ASSERT_EQ(Run({"score", "--resume", out_, document}), ExitCode::kOk) << error_;
  EXPECT_EQ(File(), Line(document, 4));
}

TEST_F(ScoreResumeTest, AnEarlyEndTellsHowToGoOn) {
  server_.first_ends = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping")};
  EXPECT_EQ(Score(documents_), ExitCode::kUnavailable);
  EXPECT_EQ(File(), Line("same", 2));
  EXPECT_THAT(error_, EndsWith("out.jsonl has 1 whole line; the same command goes on behind them\n"));

  server_.first_ends = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping")};
  EXPECT_EQ(Run({"score", "--json", "--json-lines"}, documents_), ExitCode::kUnavailable);
  EXPECT_EQ(output_, Line("same", 2));
  EXPECT_THAT(error_, HasSubstr("1 whole line were written; the same command with --resume=FILE"));
}

TEST_F(ScoreResumeTest, QuietRunsTellErrorsOnly) {
  Write(Line("same", 2));
  server_.first_ends = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping")};
  const std::string input = documents_ + "{\"text\":\"!\"}\n";
  EXPECT_EQ(Run({"score", "--json-lines", "--retry", "--quiet", "--resume", out_}, input), ExitCode::kRefused);
  EXPECT_EQ(error_, "longshort: of 4 documents, 1 refused\n");

  Write(Line("same", 2));
  server_.first_ends = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping")};
  EXPECT_EQ(Run({"score", "--json-lines", "--retry", "--resume", out_}, input), ExitCode::kRefused);
  EXPECT_THAT(error_, AllOf(HasSubstr("going on behind the 1 whole line of"), HasSubstr("is waited for: UNAVAILABLE"),
                            HasSubstr("is back")));
}

TEST_F(ScoreResumeTest, TimingsAreThereIfAskedFor) {
  server_.score.add_scores()->mutable_timings()->set_prefill_seconds(0.5);
  ASSERT_EQ(Run({"score", "--json"}, "12"), ExitCode::kOk) << error_;
  EXPECT_THAT(output_, Not(HasSubstr("timings")));
  EXPECT_THAT(output_, Not(HasSubstr("[]")));
  ASSERT_EQ(Run({"score", "--json", "--timings"}, "12"), ExitCode::kOk) << error_;
  EXPECT_THAT(output_, HasSubstr(R"("timings":{)"));
}

}  // namespace
}  // namespace longshort
