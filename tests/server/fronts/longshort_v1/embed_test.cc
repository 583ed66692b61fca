// Embed over a real connection, with a scripted engine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::embed_test {

using models::ClassifierOutput;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class EmbedTest : public ServingFixture {
 protected:
  EmbedTest() {
    std::map<std::string, core::ServedModel::Kind> models;
    const auto add = [&](const std::string& name, auto make, bool has_cls, int64_t documents = 1) {
      auto scripted = std::make_unique<ScriptedClassifierEngine>();
      engines_[name] = scripted.get();
      core::ServedClassifier model = make(std::move(scripted));
      model.info.width = 2;
      model.info.has_cls = has_cls;
      model.info.documents = documents;
      models[name] = std::move(model);
    };
    const auto texts = [](auto engine) { return TextClassifier(std::move(engine)); };
    const auto images = [](auto engine) { return ImageClassifier(std::move(engine)); };
    add("texts", texts, /*has_cls=*/true);
    add("texts of means", texts, /*has_cls=*/false);
    add("pairs", texts, /*has_cls=*/true, /*documents=*/2);
    add("images", images, /*has_cls=*/true);
    add("images of means", images, /*has_cls=*/false);
    core::ServedLanguageModel language_model = std::move(*ByteModel());
    language_model.engine = std::make_unique<ScriptedEngine>();
    models["speaker"] = std::move(language_model);
    RequestLimits limits{.prompt_tokens = 1000, .generate_tokens = 1000};
    limits.inputs = 4;
    limits.images = 4;
    Serve(RegistryOf(std::move(models)), limits);
  }

  static v1::EmbedRequest Request(const std::string& model, const std::vector<std::string>& texts = {}) {
    v1::EmbedRequest request;
    request.mutable_model()->set_name(model);
    for (const std::string& text : texts) request.add_inputs()->set_text(text);
    return request;
  }

  grpc::Status Call(const v1::EmbedRequest& request) {
    grpc::ClientContext context;
    return stub_->Embed(&context, request, &response_);
  }

  // Runs the call, whose items get these rows. Returns what was asked of the engine.
  std::vector<core::ClassificationRequest> Embed(const v1::EmbedRequest& request,
                                                 const std::vector<std::vector<float>>& rows) {
    std::vector<core::ClassificationRequest> asked;
    std::thread engine_thread([&] {
      auto items = engines_.at(request.model().name())->TakeItems(rows.size());
      for (size_t i = items.size(); i-- > 0;) {
        core::ItemResult result{.row = rows[i], .timings = {}};
        result.timings.run = absl::Seconds(2);
        items[i].listener->OnFinished(std::move(result));
      }
      for (auto& item : items) asked.push_back(std::move(item.request));
    });
    const grpc::Status status = Call(request);
    engine_thread.join();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return asked;
  }

  void ExpectError(const v1::EmbedRequest& request, grpc::StatusCode code, const std::string& message) {
    const grpc::Status status = Call(request);
    EXPECT_EQ(status.error_code(), code) << message;
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }

  std::map<std::string, ScriptedClassifierEngine*> engines_;
  v1::EmbedResponse response_;
};

TEST_F(EmbedTest, EachTextGetsItsRowAndItsReading) {
  v1::EmbedRequest request = Request("texts", {"ab", "0123456789"});
  request.set_truncate(true);
  const auto asked = Embed(request, {{3, 4}, {5, 6}});
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].output, ClassifierOutput::kFeatures);
  EXPECT_THAT(std::get<models::TokenItem>(std::get<models::ClassifierItem>(asked[0].item)).documents,
              ElementsAre(ElementsAre('a' + 1, 'b' + 1)));
  ASSERT_EQ(response_.results_size(), 2);
  const v1::Embedding &first = response_.results(0).embedding(), &second = response_.results(1).embedding();
  EXPECT_THAT(first.values(), ElementsAre(3, 4));
  EXPECT_THAT(second.values(), ElementsAre(5, 6));
  EXPECT_EQ(first.documents(0).token_count(), 2);
  EXPECT_FALSE(first.documents(0).truncated());
  EXPECT_EQ(second.documents(0).token_count(), 8) << "as many as the model reads";
  EXPECT_TRUE(second.documents(0).truncated());
  EXPECT_EQ(second.timings().run_seconds(), 2);
  EXPECT_EQ(response_.usage().prompt_tokens(), 10);
  EXPECT_EQ(response_.model().name(), "texts");
  EXPECT_EQ(response_.model().version(), 1);
}

TEST_F(EmbedTest, NormalizedVectorsHaveLengthOneAndZerosStay) {
  v1::EmbedRequest request = Request("texts", {"a", "b", "c"});
  request.set_normalize(true);
  Embed(request, {{3, 4}, {0, 0}, {1e-30F, 0}});
  EXPECT_THAT(response_.results(0).embedding().values(), Pointwise(FloatNear(1e-7), {0.6, 0.8}));
  EXPECT_THAT(response_.results(1).embedding().values(), ElementsAre(0, 0));
  EXPECT_THAT(response_.results(2).embedding().values(), ElementsAre(1, 0));
}

TEST_F(EmbedTest, ThePoolingChoosesTheModelsOutput) {
  struct Case {
    std::string model;
    v1::Pooling pooling;
    ClassifierOutput output;
  };
  for (const auto& [model, pooling, output] : std::vector<Case>{
           {"texts", v1::POOLING_UNSPECIFIED, ClassifierOutput::kFeatures},
           {"texts", v1::POOLING_CLS, ClassifierOutput::kFeatures},
           {"texts", v1::POOLING_MEAN, ClassifierOutput::kMeanOfTokens},
           {"texts of means", v1::POOLING_UNSPECIFIED, ClassifierOutput::kFeatures},
           {"texts of means", v1::POOLING_MEAN, ClassifierOutput::kMeanOfTokens},
           {"images", v1::POOLING_CLS, ClassifierOutput::kFeatures},
           {"images of means", v1::POOLING_MEAN, ClassifierOutput::kFeatures},
       }) {
    SCOPED_TRACE(model);
    v1::EmbedRequest request = Request(model);
    if (model.rfind("images", 0) == 0) {
      request.add_images()->set_encoded("abc");
    } else {
      request.add_inputs()->set_text("a");
    }
    request.set_pooling(pooling);
    EXPECT_EQ(Embed(request, {{1, 2}})[0].output, output);
  }
}

TEST_F(EmbedTest, APoolingThatTheModelDoesNotHaveIsNamedWithTheOnesThatItHas) {
  const auto refuses = [&](v1::EmbedRequest request, int pooling, grpc::StatusCode code, const std::string& message) {
    request.set_pooling(static_cast<v1::Pooling>(pooling));
    ExpectError(request, code, message);
  };
  refuses(Request("texts of means", {"a"}), v1::POOLING_CLS, grpc::StatusCode::FAILED_PRECONDITION,
          "pooling is POOLING_CLS; the model has only POOLING_MEAN");
  v1::EmbedRequest image = Request("images");
  image.add_images()->set_encoded("abc");
  refuses(image, v1::POOLING_MEAN, grpc::StatusCode::FAILED_PRECONDITION,
          "pooling is POOLING_MEAN; the model has only POOLING_CLS");
  refuses(Request("texts", {"a"}), 7, grpc::StatusCode::INVALID_ARGUMENT,
          "pooling is unknown; it must be unset, or POOLING_CLS or POOLING_MEAN");
}

TEST_F(EmbedTest, ModelsSayWhatTheyEmbed) {
  const auto models = v1::Models::NewStub(Connect({}));
  const auto classifier = [&](const std::string& name) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.mutable_model()->set_name(name);
    v1::Model model;
    EXPECT_TRUE(models->GetModel(&context, request, &model).ok());
    EXPECT_EQ(model.classifier().embedding_width(), 2);
    return model.classifier();
  };
  EXPECT_THAT(classifier("texts").poolings(), ElementsAre(v1::POOLING_CLS, v1::POOLING_MEAN));
  EXPECT_THAT(classifier("texts of means").poolings(), ElementsAre(v1::POOLING_MEAN));
  EXPECT_THAT(classifier("images").poolings(), ElementsAre(v1::POOLING_CLS));
  EXPECT_THAT(classifier("images of means").poolings(), ElementsAre(v1::POOLING_MEAN));
}

TEST_F(EmbedTest, AClassifierOfPairsEmbedsEachDocumentByItself) {
  Embed(Request("pairs", {"a", "b"}), {{1, 2}, {3, 4}});
  EXPECT_THAT(response_.results(1).embedding().values(), ElementsAre(3, 4));

  v1::EmbedRequest pair = Request("pairs", {"a"});
  pair.add_second_inputs()->set_text("b");
  ExpectError(pair, grpc::StatusCode::INVALID_ARGUMENT,
              "second_inputs[0] is set; it must be unset, because the model embeds each document by itself");
}

TEST_F(EmbedTest, ImagesComeInOrderAndErrorsStayWithTheirs) {
  v1::EmbedRequest request = Request("images");
  request.add_images()->set_encoded("abc");
  request.add_images();
  request.add_images()->set_encoded("defg");
  Embed(request, {{1, 2}, {3, 4}});
  ASSERT_EQ(response_.results_size(), 3);
  EXPECT_THAT(response_.results(0).embedding().values(), ElementsAre(1, 2));
  EXPECT_EQ(response_.results(0).embedding().documents_size(), 0);
  EXPECT_EQ(response_.results(1).error().message(),
            "images[1] is unset; it must have encoded, or a tensor with values");
  EXPECT_THAT(response_.results(2).embedding().values(), ElementsAre(3, 4));
}

TEST_F(EmbedTest, RefusesWhatTheModelDoesNotTakeAndNamesTheField) {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  ExpectError(Request("speaker", {"a"}), grpc::StatusCode::FAILED_PRECONDITION,
              "Embed needs a classifier; model speaker is a language model");
  ExpectError(Request("absent", {"a"}), grpc::StatusCode::NOT_FOUND, "absent");
  ExpectError(Request("texts"), kInvalid, "number of inputs is 0; it must be in [1, 4]");
  ExpectError(Request("texts", {"a", "b", "c", "d", "e"}), kInvalid, "number of inputs is 5; it must be in [1, 4]");
  ExpectError(Request("texts", {"a", ""}), kInvalid, "inputs[1] is empty");
  ExpectError(Request("texts", {"0123456789"}), kInvalid, "number of tokens of inputs[0] is 10");
  ExpectError(Request("images"), kInvalid, "number of images is 0; it must be in [1, 4]");
  ExpectError(Request("images", {"a"}), kInvalid, "inputs is set; it must be unset, because the model takes images");
  v1::EmbedRequest image = Request("texts", {"a"});
  image.add_images()->set_encoded("abc");
  ExpectError(image, kInvalid, "images is set; it must be unset, because the model takes texts");
  v1::EmbedRequest truncated = Request("images");
  truncated.add_images()->set_encoded("abc");
  truncated.set_truncate(true);
  ExpectError(truncated, kInvalid, "truncate is set; it must be unset, because the model takes images");
  v1::EmbedRequest second = Request("texts", {"a"});
  second.add_second_inputs()->set_text("b");
  second.add_second_inputs()->set_text("c");
  ExpectError(second, kInvalid, "number of second_inputs is 2; it must be 1, as many as inputs");
}

}  // namespace longshort::server::embed_test
