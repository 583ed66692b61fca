// ModelInfer over a real connection, with scripted engines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/schedule/refusal.h"
#include "server/call/error_details.pb.h"
#include "tests/server/fronts/open_inference/open_inference_fixture.h"

namespace longshort::server::model_infer_test {

using inference::ModelInferRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelInferTest : public OpenInferenceFixture {
 protected:
  std::string ErrorOf(const ModelInferRequest& request) {
    const grpc::Status status = Infer(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  // The values of an FP32 output.
  std::vector<float> RawFloats(int output) {
    const std::string& raw = response_.raw_output_contents(output);
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
};

TEST_F(ModelInferTest, AnAnswerHasTheFormOfItsRequest) {
  ModelInferRequest request = RawRequest("texts", "document", {"ab"});
  request.set_id("mine");
  ASSERT_TRUE(InferWith(*texts_, 1, request).ok());
  EXPECT_EQ(response_.id(), "mine");
  EXPECT_EQ(response_.model_name(), "texts");
  EXPECT_EQ(response_.model_version(), "1");
  ASSERT_EQ(response_.outputs_size(), 2);
  EXPECT_EQ(response_.outputs(0).name(), "logits");
  EXPECT_EQ(response_.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response_.outputs(0).shape(), ElementsAre(1, 3));
  EXPECT_FALSE(response_.outputs(0).has_contents());
  EXPECT_THAT(RawFloats(0), ElementsAre(0, 10, 2));
  EXPECT_EQ(response_.raw_output_contents_size(), 2);

  ASSERT_TRUE(InferWith(*texts_, 2, TypedRequest("texts", "document", {"ab", "c"})).ok());
  EXPECT_EQ(response_.raw_output_contents_size(), 0);
  EXPECT_THAT(response_.outputs(0).shape(), ElementsAre(2, 3));
  EXPECT_THAT(response_.outputs(0).contents().fp32_contents(), ElementsAre(0, 10, 2, 0, 10, 2));
  EXPECT_EQ(response_.outputs(1).name(), "probabilities");
  float sum = 0;
  for (const float probability : response_.outputs(1).contents().fp32_contents()) sum += probability;
  EXPECT_NEAR(sum, 2, 1e-6);
  EXPECT_GT(response_.outputs(1).contents().fp32_contents(1), 0.99);
}

TEST_F(ModelInferTest, AnIdHasAtMost256Bytes) {
  ModelInferRequest request = TypedRequest("texts", "document", {"ab"});
  request.set_id(std::string(256, 'i'));
  ASSERT_TRUE(InferWith(*texts_, 1, request).ok());
  EXPECT_EQ(response_.id(), request.id());
  request.set_id(std::string(257, 'i'));
  EXPECT_EQ(ErrorOf(request), "number of bytes of id is 257; it must be in [0, 256]");
}

TEST_F(ModelInferTest, OnlyTheOutputsThatAreAskedForComeInTheirOrder) {
  ModelInferRequest request = TypedRequest("texts", "document", {"ab"});
  auto& classes = *request.add_outputs();
  classes.set_name("probabilities");
  (*classes.mutable_parameters())["classification"].set_int64_param(2);
  request.add_outputs()->set_name("logits");
  ASSERT_TRUE(InferWith(*texts_, 1, request).ok());
  ASSERT_EQ(response_.outputs_size(), 2);
  EXPECT_EQ(response_.outputs(0).datatype(), "BYTES");
  EXPECT_THAT(response_.outputs(0).shape(), ElementsAre(1, 2));
  EXPECT_THAT(response_.outputs(0).contents().bytes_contents(),
              ElementsAre(::testing::MatchesRegex("0[.]9996.*:1:dog"), ::testing::MatchesRegex("0[.]0003.*:2:owl")));
  EXPECT_EQ(response_.outputs(1).name(), "logits");

  request.clear_outputs();
  auto& logits = *request.add_outputs();
  logits.set_name("logits");
  (*logits.mutable_parameters())["classification"].set_int64_param(9);
  ASSERT_TRUE(InferWith(*texts_, 1, request).ok());
  EXPECT_THAT(response_.outputs(0).contents().bytes_contents(), ElementsAre("10:1:dog", "2:2:owl", "0:0:cat"));
}

TEST_F(ModelInferTest, AnEmbeddingComesIfItIsAskedForAloneOrWithOtherOutputs) {
  ModelInferRequest request = TypedRequest("texts", "document", {"ab", "c"});
  request.add_outputs()->set_name("embedding");
  ASSERT_TRUE(InferWith(*texts_, 2, request).ok());
  ASSERT_EQ(response_.outputs_size(), 1);
  EXPECT_EQ(response_.outputs(0).name(), "embedding");
  EXPECT_EQ(response_.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response_.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(response_.outputs(0).contents().fp32_contents(), ElementsAre(7, 8, 7, 8));

  request.add_outputs()->set_name("logits");
  request.add_outputs()->set_name("probabilities");
  ASSERT_TRUE(InferWith(*texts_, 2, request).ok());
  EXPECT_THAT(response_.outputs(0).contents().fp32_contents(), ElementsAre(7, 8, 7, 8));
  EXPECT_THAT(response_.outputs(1).contents().fp32_contents(), ElementsAre(0, 10, 2, 0, 10, 2));
  EXPECT_THAT(response_.outputs(2).shape(), ElementsAre(2, 3));

  (*request.mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(1);
  EXPECT_EQ(ErrorOf(request),
            "parameters.classification of output embedding is 1; it must be unset, because the output has no classes");
}

TEST_F(ModelInferTest, WrongOutputsAreNamed) {
  ModelInferRequest request = TypedRequest("texts", "document", {"ab"});
  auto& output = *request.add_outputs();
  output.set_name("softmax");
  EXPECT_EQ(ErrorOf(request), "output \"softmax\" is unknown; model texts has logits, probabilities, embedding");
  output.set_name("logits");
  (*output.mutable_parameters())["classification"].set_int64_param(0);
  EXPECT_EQ(ErrorOf(request), "parameters.classification of output logits is 0; it must be at least 1");
  (*output.mutable_parameters())["classification"].set_int64_param(1);
  (*output.mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_THAT(ErrorOf(request), HasSubstr("shared memory is not supported"));
  output.clear_parameters();
  request.add_outputs()->set_name("logits");
  EXPECT_EQ(ErrorOf(request), "output \"logits\" is requested twice; request it once");
  ModelInferRequest prompt = TypedRequest("speaker", "prompt", {"ab"});
  prompt.add_outputs()->set_name("text");
  (*prompt.mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(1);
  EXPECT_EQ(ErrorOf(prompt),
            "parameters.classification of output text is 1; it must be unset, because the output has no classes");
}

TEST_F(ModelInferTest, WrongInputsAreNamed) {
  EXPECT_EQ(ErrorOf(TypedRequest("texts", "prompt", {"a"})), "input \"prompt\" is unknown; model texts takes document");
  EXPECT_EQ(ErrorOf(TypedRequest("pairs", "document", {"a"})),
            "the input second_document is missing; model pairs needs it");
  EXPECT_EQ(
      ErrorOf(TypedRequest("texts", "document", {"far too long"})),
      "number of tokens of document[0] is 12; it must be in [1, 8] (more with parameters.truncate, which reads the "
      "first 8)");
  EXPECT_EQ(ErrorOf(TypedRequest("texts", "document", std::vector<std::string>(2049, "a"))),
            "number of elements of input \"document\" is 2049; it must be in [1, 2048]");
  EXPECT_EQ(ErrorOf(TypedRequest("speaker", "prompt", {"a", "b"})),
            "number of prompts is 2; it must be 1; send the others as separate requests");
  ModelInferRequest neither;
  neither.set_model_name("speaker");
  EXPECT_EQ(ErrorOf(neither),
            "model speaker takes either the input prompt, to continue, or the input document, to score; the request "
            "has neither");
}

TEST_F(ModelInferTest, WrongModelsAndVersionsAreNamed) {
  ModelInferRequest request = TypedRequest("unknown", "document", {"a"});
  EXPECT_EQ(Infer(request).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_model_name("texts");
  request.set_model_version("2");
  EXPECT_EQ(Infer(request).error_code(), grpc::StatusCode::NOT_FOUND);
  for (const char* version : {"0", "-1", "newest", "1.0"}) {
    request.set_model_version(version);
    EXPECT_THAT(ErrorOf(request), HasSubstr("it must be a whole number of at least 1, or empty for the newest"));
  }
}

TEST_F(ModelInferTest, ParametersAreHonouredOrRefused) {
  ModelInferRequest request = TypedRequest("texts", "document", {"far too long"});
  (*request.mutable_parameters())["truncate"].set_bool_param(true);
  EXPECT_TRUE(InferWith(*texts_, 1, request).ok());
  (*request.mutable_parameters())["max_tokens"].set_int64_param(4);
  EXPECT_THAT(ErrorOf(request), HasSubstr("a name of parameters is \"max_tokens\"; it must be one of truncate, "));
  request.clear_parameters();
  (*request.mutable_parameters())["sequence_id"].set_int64_param(4);
  EXPECT_THAT(ErrorOf(request), HasSubstr("models do not take sequences"));
  request.clear_parameters();
  (*request.mutable_parameters())["priority"].set_uint64_param(4);
  EXPECT_EQ(ErrorOf(request),
            "parameters.priority is 4; it must be 1 (high), 2 (normal), 3 (low) or 0 (the call's priority)");
  request.clear_parameters();
  (*request.mutable_parameters())["timeout"].set_int64_param(-1);
  EXPECT_EQ(ErrorOf(request), "parameters.timeout is -1; it must be at least 0 (microseconds)");
}

TEST_F(ModelInferTest, PriorityAndTimeoutReachTheEngine) {
  ModelInferRequest request = TypedRequest("texts", "document", {"a"});
  (*request.mutable_parameters())["priority"].set_uint64_param(1);
  (*request.mutable_parameters())["timeout"].set_int64_param(30'000'000);
  const absl::Time before = MonotonicNow();
  std::thread thread([&] {
    const auto items = texts_->TakeItems(1);
    const core::RequestContext& context = items[0].request.context;
    EXPECT_EQ(context.priority, core::Priority::kHigh);
    EXPECT_GE(context.deadline, before + absl::Seconds(30));
    EXPECT_LE(context.deadline, MonotonicNow() + absl::Seconds(30));
    items[0].listener->OnFinished(absl::DeadlineExceededError("late"));
  });
  EXPECT_EQ(Infer(request).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  thread.join();
}

TEST_F(ModelInferTest, AnInvalidImageFailsItsRequest) {
  std::thread thread([&] { End(*images_, 2); });
  EXPECT_EQ(ErrorOf(RawRequest("images", "image", {"abc", "broken"})), "image[1]: not an image");
  thread.join();
}

TEST_F(ModelInferTest, ARefusalHasARetryDelay) {
  texts_->on_submit = [](int) {
    absl::Status full = absl::ResourceExhaustedError("full");
    core::SetRefusal(full, {.retry_after = absl::Seconds(2), .queue_depth = 17});
    return full;
  };
  grpc::ClientContext context;
  const grpc::Status status = open_stub_->ModelInfer(&context, TypedRequest("texts", "document", {"a"}), &response_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(status.error_details().empty());
  EXPECT_EQ(context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1);
}

TEST_F(ModelInferTest, APromptIsContinued) {
  ModelInferRequest request = TypedRequest("speaker", "prompt", {"abc"});
  (*request.mutable_parameters())["completions"].set_int64_param(2);
  (*request.mutable_parameters())["stop"].set_string_param(".");
  std::thread thread([&] {
    const auto generations = speaker_->TakeGenerations(2);
    EXPECT_THAT(generations[0].request.stop_strings, ElementsAre("."));
    generations[0].listener->OnDelta(Bytes("one"));
    generations[1].listener->OnDelta(Bytes("two"));
    core::GenerationSummary stopped = Summary(1);
    stopped.finish_reason = core::FinishReason::kStopString;
    generations[0].listener->OnFinished(absl::OkStatus(), stopped);
    generations[1].listener->OnFinished(absl::OkStatus(), Summary(1));
  });
  ASSERT_TRUE(Infer(request).ok());
  thread.join();
  EXPECT_THAT(response_.outputs(0).contents().bytes_contents(), ElementsAre("one", "two"));
  EXPECT_EQ(response_.outputs(1).name(), "finish_reason");
  EXPECT_THAT(response_.outputs(1).contents().bytes_contents(), ElementsAre("stop", "length"));
  EXPECT_EQ(response_.parameters().at("generated_tokens").int64_param(), 2);
  EXPECT_EQ(response_.parameters().at("prompt_tokens").int64_param(), 6);
}

TEST_F(ModelInferTest, AModelWithoutVocabularyTakesAndGivesIds) {
  ModelInferRequest request;
  request.set_model_name("ids");
  auto& prompt = AddInput(request, "prompt", "INT32", {1, 2});
  prompt.mutable_contents()->add_int_contents(4);
  prompt.mutable_contents()->add_int_contents(5);
  std::thread thread([&] {
    const auto generation = ids_->TakeGenerations(1)[0];
    EXPECT_THAT(generation.request.prompt, ElementsAre(4, 5));
    core::GeneratedToken token;
    token.token = 7;
    generation.listener->OnDelta({.bytes = "", .tokens = {token, token}});
    generation.listener->OnFinished(absl::OkStatus(), Summary(2));
  });
  ASSERT_TRUE(Infer(request).ok());
  thread.join();
  EXPECT_EQ(response_.outputs(0).name(), "token_ids");
  EXPECT_THAT(response_.outputs(0).contents().int_contents(), ElementsAre(7, 7));
  (*request.mutable_parameters())["completions"].set_int64_param(2);
  EXPECT_EQ(
      ErrorOf(request),
      "parameters.completions is 2; it must be 1, because the model has no vocabulary, and token_ids is one list");
  EXPECT_EQ(ErrorOf(TypedRequest("ids", "prompt", {"a"})),
            "prompt is text; it must be ids, because the model has no vocabulary");
  prompt.mutable_contents()->set_int_contents(1, 4000);
  request.clear_parameters();
  EXPECT_EQ(ErrorOf(request), "prompt (token 1) is 4000; it must be in [0, 259]");
}

TEST_F(ModelInferTest, DocumentsAreScoredAndOtherOutputsAreEmpty) {
  ModelInferRequest request = RawRequest("speaker", "document", {"abc"});
  for (const char* name : {"log_likelihood", "token_count", "text", "scored_token_count", "finish_reason"}) {
    request.add_outputs()->set_name(name);
  }
  std::thread thread([&] {
    core::Score score;
    score.total_log_probability = -2.5;
    score.scored_tokens = 2;
    speaker_->TakeScorings(1)[0].listener->OnFinished(score);
  });
  ASSERT_TRUE(Infer(request).ok());
  thread.join();
  double likelihood = 0;
  ASSERT_EQ(response_.raw_output_contents(0).size(), sizeof(likelihood));
  std::memcpy(&likelihood, response_.raw_output_contents(0).data(), sizeof(likelihood));
  EXPECT_EQ(likelihood, -2.5);
  EXPECT_EQ(response_.raw_output_contents(1), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(response_.outputs(2).datatype(), "BYTES");
  EXPECT_THAT(response_.outputs(2).shape(), ElementsAre(0));
  EXPECT_EQ(response_.raw_output_contents(2), "");
  EXPECT_EQ(response_.raw_output_contents(3), std::string("\2\0\0\0\0\0\0\0", 8));
}

}  // namespace longshort::server::model_infer_test
