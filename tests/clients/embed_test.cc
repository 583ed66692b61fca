// `longshort embed`: what is asked, and the lines and files that it writes.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/program_fixture.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::embed_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The fake model's vector of an item is its length and 0.5. It takes none that begins with '!'.
class EmbedTest : public ProgramTest {
 protected:
  EmbedTest() {
    server_.models = {ReviewsModel()};
    server_.models[0].mutable_classifier()->set_embedding_width(2);
    server_.documents_in_work = 3;
    server_.score_document = [](const v1::ScoreTextsRequest& request) {
      v1::ScoreTextsResponse answer;
      answer.mutable_model()->set_name("reviews");
      if (request.input().raw().front() == '!') {
        answer.mutable_error()->set_code(3);
        answer.mutable_error()->set_message("it is refused");
      } else {
        *answer.mutable_embedding() = Vector(request.input().raw());
      }
      return answer;
    };
    server_.embed = [this](const v1::EmbedRequest& request, v1::EmbedResponse& response) {
      *response.mutable_model() = request.model();
      for (const v1::Image& image : request.images()) {
        v1::EmbedResult& result = *response.add_results();
        if (image.encoded().front() == '!') {
          result.mutable_error()->set_code(3);
          result.mutable_error()->set_message("images[1]: it is no image");
        } else {
          *result.mutable_embedding() = Vector(image.encoded());
        }
      }
      last_ = request;
      return grpc::Status::OK;
    };
  }

  static v1::Embedding Vector(const std::string& bytes) {
    v1::Embedding embedding;
    embedding.add_values(static_cast<float>(bytes.size()));
    embedding.add_values(0.5F);
    embedding.mutable_timings()->set_run_seconds(1);
    return embedding;
  }

  // The numbers of a NumPy file, whose header must state this shape.
  static std::vector<float> ReadNpy(const std::string& name, const std::string& shape) {
    std::ostringstream read;
    read << std::ifstream(name, std::ios::binary).rdbuf();
    const std::string bytes = read.str();
    EXPECT_THAT(bytes.substr(0, 128), StartsWith(std::string("\x93NUMPY\x01\x00\x76\x00{'descr': '<f4'", 25)));
    EXPECT_THAT(bytes.substr(0, 128), HasSubstr(absl::StrCat("'shape': ", shape, ", }")));
    EXPECT_EQ(bytes[127], '\n');
    std::vector<float> numbers((bytes.size() - 128) / sizeof(float));
    std::memcpy(numbers.data(), bytes.data() + 128, numbers.size() * sizeof(float));
    return numbers;
  }

  TemporaryFolder folder_;
  v1::EmbedRequest last_;  // read it after a run with one call
};

TEST_F(EmbedTest, ALineOfJsonHasTheVectorAndItsOrigin) {
  ASSERT_EQ(Run({"embed", "--pooling=mean", "--normalize", "--truncate", folder_.Write("a.txt", "four")}),
            ExitCode::kOk)
      << error_;
  EXPECT_THAT(output_, StartsWith(absl::StrCat("{\"name\":\"", folder_ / "a.txt", "\",\"model\":")));
  EXPECT_THAT(output_, HasSubstr("\"values\":[4,0.5]"));
  EXPECT_THAT(output_, Not(HasSubstr("timings")));
  const v1::ScoreTextsOptions& asked = server_.document_requests.front().options();
  EXPECT_EQ(asked.embedding().pooling(), v1::POOLING_MEAN);
  EXPECT_TRUE(asked.embedding().normalize());
  EXPECT_TRUE(asked.truncate());
  EXPECT_EQ(asked.model().version(), 2);
}

TEST_F(EmbedTest, LinesAreRowsOfAFileOfNumPy) {
  std::string lines;
  std::vector<float> expected;
  for (int i = 0; i < 150; ++i) {
    lines += std::string(1 + i % 20, 'x') + "\n";
    expected.insert(expected.end(), {static_cast<float>(1 + i % 20), 0.5F});
  }
  ASSERT_EQ(Run({"embed", "--lines", "--npy", folder_ / "v.npy", "-"}, lines), ExitCode::kOk) << error_;
  EXPECT_EQ(ReadNpy(folder_ / "v.npy", "(150, 2)"), expected);
  EXPECT_EQ(output_, "");
}

TEST_F(EmbedTest, PairsAreEmbeddedByAModelThatJoinsThem) {
  server_.models[0].mutable_classifier()->set_documents(1);
  server_.models[0].mutable_classifier()->set_max_documents(2);
  const std::string a = folder_.Write("a", "A"), b = folder_.Write("b", "B");
  ASSERT_EQ(Run({"embed", "--second", b, a}), ExitCode::kOk) << error_;
  EXPECT_EQ(server_.document_requests[0].second_input().raw(), "B");
}

TEST_F(EmbedTest, AModelThatComparesTwoDocumentsEmbedsEachByItself) {
  server_.models[0].mutable_classifier()->set_documents(2);
  server_.models[0].mutable_classifier()->set_max_documents(2);
  ASSERT_EQ(Run({"embed", "--lines"}, "a\n"), ExitCode::kOk) << error_;
  EXPECT_FALSE(server_.document_requests[0].has_second_input());
  const std::string a = folder_.Write("a", "A"), npy = folder_ / "v.npy";
  EXPECT_EQ(Run({"embed", "--npy", npy, "--second", a, a}), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("reviews compares two documents, and embeds each by itself"));
  EXPECT_FALSE(std::filesystem::exists(npy));
}

TEST_F(EmbedTest, ATextThatTheServerRefusesIsAnErrorAndTheOthersAreEmbedded) {
  server_.models[0].mutable_limits()->set_message_bytes(30);
  EXPECT_EQ(Run({"embed", "--lines", "-"}, "a\n!\nlonger than a message of 30 bytes\nbb\n"), ExitCode::kInvalid);
  EXPECT_THAT(output_, HasSubstr("{\"name\":\"-:1\",\"model\""));
  EXPECT_THAT(output_, HasSubstr("{\"name\":\"-:2\",\"error\":{\"code\":3,\"message\":\"it is refused\""));
  EXPECT_THAT(output_,
              HasSubstr("{\"name\":\"-:3\",\"error\":{\"code\":3,\"message\":\"the document needs a message of"));
  EXPECT_THAT(output_, HasSubstr("\"values\":[2,0.5]"));
  EXPECT_THAT(error_, HasSubstr("of 4 documents, 2 invalid or not allowed"));
}

TEST_F(EmbedTest, ImagesThatFailAreRowsOfNaN) {
  server_.models = {FlowersModel()};
  server_.models[0].mutable_classifier()->set_embedding_width(2);
  const std::string good = folder_.Write("a.png", "good"), bad = folder_.Write("b.png", "!");
  EXPECT_EQ(Run({"embed", "--npy", folder_ / "v.npy", "--pooling=cls", good, bad, good}), ExitCode::kInvalid);
  EXPECT_EQ(last_.pooling(), v1::POOLING_CLS);
  const std::vector<float> rows = ReadNpy(folder_ / "v.npy", "(3, 2)");
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[4], 4);
  EXPECT_TRUE(std::isnan(rows[2]) && std::isnan(rows[3]));
  EXPECT_THAT(error_, HasSubstr(absl::StrCat(bad, ": INVALID_ARGUMENT: it is no image")));
}

TEST_F(EmbedTest, AnAnswerWithAnotherNumberOfResultsIsAnError) {
  server_.models = {FlowersModel()};
  server_.models[0].mutable_classifier()->set_embedding_width(2);
  server_.embed = [](const v1::EmbedRequest& /*request*/, v1::EmbedResponse& response) {
    response.add_results();
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"embed", folder_.Write("a.png", "good"), folder_.Write("b.png", "bad")}), ExitCode::kOther);
  EXPECT_THAT(error_, HasSubstr("the server answered 2 images with 1 results"));
}

TEST_F(EmbedTest, WrongOptionsAndModelsAreNamed) {
  EXPECT_EQ(Run({"embed", "--pooling=max", "-"}, "a"), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("--pooling is \"max\"; it must be cls or mean"));
  EXPECT_EQ(Run({"embed", "--npy", folder_ / "no/such/folder.npy", "-"}, "a"), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("No such file or directory"));
  server_.models = {FlowersModel()};
  EXPECT_EQ(Run({"embed", folder_.Write("a.png", "good")}), ExitCode::kInvalid);
  EXPECT_THAT(error_, HasSubstr("the server is older than embeddings"));
  server_.models[0].mutable_classifier()->set_embedding_width(2);
  EXPECT_EQ(Run({"embed", "--lines", "-"}, "a"), ExitCode::kUsage);
  EXPECT_THAT(error_, HasSubstr("flowers takes images"));
}

}  // namespace longshort::client::embed_test
