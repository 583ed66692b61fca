#include "tools/load/workload.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/load/request_source.h"

namespace longshort::load::workload_test {

using testing::HasSubstr;
using testing::StartsWith;

Workload Parsed(const std::string& text) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return workload.value_or(Workload());
}

v1::GenerateRequest Generated(const Workload& workload, uint64_t seed, int64_t index) {
  return std::get<v1::GenerateRequest>(RequestSource::Create(workload, seed)->Make(index));
}

TEST(ParseWorkload, ReadsEveryKindOfValue) {
  const Workload workload = Parsed("generate,name=mine,rate=2.5,prompt=32:64,shared=8,deadline=1m30s");
  EXPECT_EQ(workload.rpc, Rpc::kGenerateStream);
  EXPECT_EQ(workload.name, "mine");
  EXPECT_TRUE(workload.open_loop());
  EXPECT_EQ(workload.prompt.max, 64);
  EXPECT_EQ(workload.deadline, absl::Seconds(90));
  EXPECT_FALSE(Parsed("score,concurrency=4").open_loop());
}

TEST(ParseWorkload, AClassifierTakesTextsOrImages) {
  EXPECT_EQ(Parsed("classify,model=flowers").rpc, Rpc::kClassifyImage);
  EXPECT_EQ(Parsed("classify,model=languages,prompt=200:900").rpc, Rpc::kScoreText);
  EXPECT_THAT(ParseWorkload("classify,prompt=9,image_side=32").status().message(), HasSubstr("texts or images"));
}

TEST(ParseWorkload, ErrorsNameKeyValueAndLimit) {
  const auto error = [](const std::string& text) { return std::string(ParseWorkload(text).status().message()); };
  EXPECT_THAT(error("dance"), HasSubstr("generate, score or classify, not 'dance'"));
  EXPECT_THAT(error("score,pormpt=4"), HasSubstr("unknown key 'pormpt'"));
  EXPECT_THAT(error("score,prompt=9:4"), HasSubstr("prompt='9:4'"));
  EXPECT_THAT(error("score,protocol=http"), HasSubstr("longshort or open_inference"));
  EXPECT_THAT(error("generate,protocol=open_inference"), HasSubstr("supports only score with text"));
  EXPECT_THAT(error("score,ids=4:9,protocol=open_inference"), HasSubstr("supports only score with text"));
  EXPECT_THAT(error("classify,documents=2"), HasSubstr("only classify with prompt="));
  EXPECT_THAT(error("score,documents=3"), HasSubstr("[1, 2]"));
  EXPECT_THAT(error("score,rate=0"), HasSubstr("[1e-06, 1e+06]"));
  EXPECT_THAT(error("score,prompt=4,shared=5"), HasSubstr("shared=5"));
}

TEST(RequestSource, SeedAndIndexDecideTheRequest) {
  const Workload workload = Parsed("generate,prompt=20:40,tokens=1:1000");
  EXPECT_EQ(Generated(workload, 1, 5).SerializeAsString(), Generated(workload, 1, 5).SerializeAsString());
  EXPECT_NE(Generated(workload, 1, 5).prompt().text(), Generated(workload, 1, 6).prompt().text());
  EXPECT_NE(Generated(workload, 1, 5).prompt().text(), Generated(workload, 2, 5).prompt().text());
  for (int64_t index = 0; index < 100; ++index) {
    const size_t length = Generated(workload, 1, index).prompt().text().size();
    EXPECT_TRUE(length >= 20 && length <= 40) << length;
  }
}

TEST(RequestSource, ASecondDocumentBelongsToEachFirstOne) {
  const auto request = [](const std::string& text) {
    return std::get<v1::ScoreTextRequest>(RequestSource::Create(Parsed(text), 1)->Make(3));
  };
  const v1::ScoreTextRequest pair = request("classify,prompt=20,documents=2");
  ASSERT_EQ(pair.inputs_size(), 1);
  ASSERT_EQ(pair.second_inputs_size(), 1);
  EXPECT_NE(pair.inputs(0).text(), pair.second_inputs(0).text());
  EXPECT_EQ(request("classify,prompt=20").second_inputs_size(), 0);
}

TEST(RequestSource, TheOpenInferenceProtocolAsksTheSame) {
  const auto score = std::get<v1::ScoreTextRequest>(RequestSource::Create(Parsed("score"), 1)->Make(5));
  const auto infer = std::get<inference::ModelInferRequest>(
      RequestSource::Create(Parsed("score,protocol=open_inference"), 1)->Make(5));
  const std::string length(std::string("@\0\0\0", 4));  // 64
  EXPECT_EQ(infer.raw_input_contents(0), length + score.inputs(0).text());
  const auto classify =
      std::get<v1::ClassifyImageRequest>(RequestSource::Create(Parsed("classify,image_side=3"), 1)->Make(5));
  const auto pixels = std::get<inference::ModelInferRequest>(
      RequestSource::Create(Parsed("classify,image_side=3,protocol=open_inference"), 1)->Make(5));
  EXPECT_EQ(pixels.raw_input_contents(0), classify.images(0).tensor().uint8_values());
}

TEST(RequestSource, PrefixesAreSharedAcrossRunsAndTakeTurns) {
  const Workload workload = Parsed("generate,prompt=30,shared=20,prefix=7,prefixes=2");
  const std::string seventh = Generated(workload, 1, 0).prompt().text();
  const std::string eighth = Generated(workload, 1, 1).prompt().text();
  const std::string again = Generated(workload, 2, 2).prompt().text();
  EXPECT_THAT(again, StartsWith(seventh.substr(0, 20)));
  EXPECT_NE(again, seventh);
  EXPECT_NE(eighth.substr(0, 20), seventh.substr(0, 20));
  EXPECT_THAT(Generated(Parsed("generate,prompt=30,shared=20,prefix=8"), 3, 0).prompt().text(),
              StartsWith(eighth.substr(0, 20)));
}

TEST(RequestSource, IdsStayInTheirRange) {
  const v1::GenerateRequest request = Generated(Parsed("generate,prompt=500,ids=4:6"), 1, 0);
  ASSERT_EQ(request.prompt().ids().ids_size(), 500);
  for (const int32_t id : request.prompt().ids().ids()) EXPECT_TRUE(id >= 4 && id <= 6) << id;
}

TEST(RequestSource, MakesImagesAndDocumentsOfTheSizesAskedFor) {
  const Request images = RequestSource::Create(Parsed("classify,image_side=5"), 1)->Make(0);
  const auto& classify = std::get<v1::ClassifyImageRequest>(images);
  ASSERT_EQ(classify.images_size(), 1);
  EXPECT_EQ(classify.images(0).tensor().uint8_values().size(), 5 * 5 * 3);
  const Request documents = RequestSource::Create(Parsed("score,prompt=9"), 1)->Make(0);
  EXPECT_EQ(std::get<v1::ScoreTextRequest>(documents).inputs(0).text().size(), 9);
  EXPECT_EQ(RequestSource::Create(Parsed("classify,image=/nowhere.jpg"), 1).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace longshort::load::workload_test
