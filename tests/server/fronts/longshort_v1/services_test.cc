// The services over a real connection on loopback, with a scripted engine.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "core/schedule/refusal.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "server/call/error_details.pb.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::services_test {

class ServicesTest : public ServingFixture {
 protected:
  ServicesTest() {
    auto scripted = std::make_unique<ScriptedEngine>();
    engine_ = scripted.get();
    Serve(RegistryOf(std::move(scripted)));
    request_.mutable_prompt()->set_text("p");
  }

  ScriptedEngine* engine_;
  v1::GenerateRequest request_;
};

core::GenerationDelta Bytes(const std::string& bytes) { return {.bytes = bytes, .tokens = {core::GeneratedToken()}}; }

core::GenerationSummary Summary(int64_t generated) {
  core::GenerationSummary summary;
  summary.prompt_tokens = 1;
  summary.generated_tokens = generated;
  return summary;
}

core::Score Scored(double total_log_probability, int64_t scored_tokens) {
  core::Score score;
  score.total_log_probability = total_log_probability;
  score.scored_tokens = scored_tokens;
  return score;
}

TEST_F(ServicesTest, ACharacterThatIsCutArrivesWhole) {
  grpc::ClientContext context;
  const auto reader = stub_->GenerateStream(&context, request_);
  const auto listener = engine_->TakeGenerations(1)[0].listener;
  listener->OnDelta(Bytes("\xC3"));
  listener->OnDelta(Bytes("\xA9"));
  listener->OnDelta(Bytes("\xE2\x82"));
  listener->OnFinished(absl::OkStatus(), Summary(3));
  std::string text;
  int64_t tokens = 0;
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) {
    text += event.delta().text();
    tokens += event.delta().token_count();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(text, "\xC3\xA9\xEF\xBF\xBD");
  EXPECT_EQ(tokens, 3);
}

TEST_F(ServicesTest, ARefusedCompletionCancelsTheOthersAndIsTheAnswer) {
  engine_->on_submit = [](int n) {
    return n == 1 ? absl::ResourceExhaustedError("the queue is full") : absl::OkStatus();
  };
  request_.set_completions(3);
  std::thread engine_thread([this] {
    const auto first = engine_->TakeGenerations(1)[0];
    while (!first.request.context.cancelled->load()) std::this_thread::yield();
    first.listener->OnFinished(absl::CancelledError("cancelled"), Summary(0));
  });
  grpc::ClientContext context;
  v1::GenerateResponse response;
  const grpc::Status status = stub_->Generate(&context, request_, &response);
  engine_thread.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "the queue is full");
}

TEST_F(ServicesTest, AStreamWithARefusedPartHasOnlyItsStatus) {
  engine_->on_submit = [](int n) {
    return n == 1 ? absl::ResourceExhaustedError("the queue is full") : absl::OkStatus();
  };
  request_.set_completions(3);
  std::thread engine_thread([this] {
    const auto first = engine_->TakeGenerations(1)[0];
    first.listener->OnDelta(Bytes("a"));
    while (!first.request.context.cancelled->load()) std::this_thread::yield();
    first.listener->OnFinished(absl::CancelledError("cancelled"), Summary(1));
  });
  grpc::ClientContext context;
  const auto reader = stub_->GenerateStream(&context, request_);
  v1::GenerateStreamResponse event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_message(), "the queue is full");
  engine_thread.join();
  EXPECT_THAT(context.GetServerInitialMetadata(), ::testing::IsEmpty()) << "so its client may retry";
}

TEST_F(ServicesTest, ARefusalHasARetryDelay) {
  engine_->on_submit = [](int) {
    absl::Status full = absl::ResourceExhaustedError("the queue is full");
    core::SetRefusal(full, {.retry_after = absl::Milliseconds(2500), .queue_depth = 17});
    return full;
  };
  grpc::ClientContext context;
  v1::GenerateResponse response;
  const grpc::Status status = stub_->Generate(&context, request_, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  rpc::ErrorStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(details.message(), "the queue is full");
  rpc::RetryInfo retry;
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
  ASSERT_TRUE(retry.ParseFromString(details.details(0).value()));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
  const auto depth = context.GetServerTrailingMetadata().find("longshort-queue-depth");
  ASSERT_NE(depth, context.GetServerTrailingMetadata().end());
  EXPECT_EQ(std::string(depth->second.data(), depth->second.size()), "17");
  const auto pushback = context.GetServerTrailingMetadata().find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, context.GetServerTrailingMetadata().end());
  EXPECT_EQ(std::string(pushback->second.data(), pushback->second.size()), "2500");
}

TEST_F(ServicesTest, ClientAndPriorityReachTheEngine) {
  environment_->trusts_client_ids = true;
  grpc::ClientContext context;
  context.AddMetadata("x-client-id", "batch-7");
  context.AddMetadata("x-priority", "low");
  const auto reader = stub_->GenerateStream(&context, request_);
  const auto generation = engine_->TakeGenerations(1)[0];
  EXPECT_EQ(generation.request.context.client, "batch-7");
  EXPECT_EQ(generation.request.context.priority, core::Priority::kLow);
  generation.listener->OnFinished(absl::OkStatus(), Summary(0));
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) continue;
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServicesTest, InvalidMetadataIsNamed) {
  for (const auto& [key, value] : {std::pair("x-client-id", "two words"), std::pair("x-priority", "urgent")}) {
    grpc::ClientContext context;
    context.AddMetadata(key, value);
    v1::GenerateResponse response;
    const grpc::Status status = stub_->Generate(&context, request_, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), testing::AllOf(testing::HasSubstr(key), testing::HasSubstr(value)));
  }
}

TEST_F(ServicesTest, OnlyAStreamKeepsAPartOfItsAnswerInTheSession) {
  request_.mutable_session()->set_id("talk");
  request_.set_keep_partial(true);
  grpc::ClientContext stream_context;
  const auto reader = stub_->GenerateStream(&stream_context, request_);
  const ScriptedEngine::Generation streamed = engine_->TakeGenerations(1)[0];
  EXPECT_TRUE(streamed.request.session->keep_partial);
  streamed.listener->OnFinished(absl::OkStatus(), Summary(0));
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) continue;
  EXPECT_TRUE(reader->Finish().ok());
  std::thread engine_thread([this] {
    const ScriptedEngine::Generation unary = engine_->TakeGenerations(1)[0];
    EXPECT_EQ(unary.request.session->id, "talk");
    EXPECT_FALSE(unary.request.session->keep_partial);
    unary.listener->OnFinished(absl::OkStatus(), Summary(0));
  });
  grpc::ClientContext context;
  v1::GenerateResponse response;
  EXPECT_TRUE(stub_->Generate(&context, request_, &response).ok());
  engine_thread.join();
}

TEST_F(ServicesTest, AnErrorOfTheEngineComesAfterTheTextBeforeIt) {
  grpc::ClientContext context;
  const auto reader = stub_->GenerateStream(&context, request_);
  const auto listener = engine_->TakeGenerations(1)[0].listener;
  listener->OnDelta(Bytes("text"));
  listener->OnFinished(absl::InternalError("the model failed"), Summary(1));
  std::string text;
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) text += event.delta().text();
  EXPECT_EQ(text, "text");
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "the model failed");
}

TEST_F(ServicesTest, AClientThatLeavesCancelsTheWorkAndLaterOutputIsIgnored) {
  auto context = std::make_unique<grpc::ClientContext>();
  auto reader = stub_->GenerateStream(context.get(), request_);
  const auto generation = engine_->TakeGenerations(1)[0];
  context->TryCancel();
  reader->Finish();
  while (!generation.request.context.cancelled->load()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) generation.listener->OnDelta(Bytes("x"));
  generation.listener->OnFinished(absl::CancelledError("cancelled"), Summary(100));
}

TEST_F(ServicesTest, ASilentStreamSendsKeepalives) {
  grpc::ClientContext context;
  const auto reader = stub_->GenerateStream(&context, request_);
  const auto listener = engine_->TakeGenerations(1)[0].listener;
  v1::GenerateStreamResponse event;
  ASSERT_TRUE(reader->Read(&event) && event.has_start());
  ASSERT_TRUE(reader->Read(&event) && event.has_keep_alive());
  ASSERT_TRUE(reader->Read(&event) && event.has_keep_alive());
  listener->OnFinished(absl::OkStatus(), Summary(0));
  while (reader->Read(&event)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServicesTest, ScoresComeInTheOrderOfTheInputsWhateverEndsFirst) {
  v1::ScoreTextRequest request;
  for (const char* text : {"aa", "bbb"}) request.add_inputs()->set_text(text);
  std::thread engine_thread([this] {
    const auto scorings = engine_->TakeScorings(2);
    EXPECT_EQ(scorings[0].request.context.position_in_call.share, 0.4);
    EXPECT_EQ(scorings[1].request.context.position_in_call.share, 0.6);
    scorings[1].listener->OnFinished(Scored(-4, 2));
    scorings[0].listener->OnFinished(Scored(-1, 1));
  });
  grpc::ClientContext context;
  v1::ScoreTextResponse response;
  EXPECT_TRUE(stub_->ScoreText(&context, request, &response).ok());
  engine_thread.join();
  ASSERT_EQ(response.scores_size(), 2);
  EXPECT_EQ(response.scores(0).log_likelihood(), -1);
  EXPECT_EQ(response.scores(1).log_likelihood(), -4);
  EXPECT_NEAR(response.scores(1).bits_per_byte(), 2 / 0.6931471805599453, 1e-12);
  EXPECT_EQ(response.usage().prompt_tokens(), 5);
}

TEST_F(ServicesTest, DeadlineAndIdReachTheEngine) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(100));
  context.AddMetadata("x-request-id", "chosen");
  const auto reader = stub_->GenerateStream(&context, request_);
  const auto generation = engine_->TakeGenerations(1)[0];
  EXPECT_EQ(generation.request.context.id, "chosen");
  const absl::Duration left = generation.request.context.deadline - absl::Now();
  EXPECT_GT(left, absl::Seconds(90));
  EXPECT_LE(left, absl::Seconds(101));
  generation.listener->OnFinished(absl::OkStatus(), Summary(0));
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
}

// gRPC reports such a call like one that is cancelled before its message arrived.
TEST_F(ServicesTest, ACallWithoutAMessageIsNotTakenForAMalformedOne) {
  grpc::GenericStub stub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", endpoint_->address().port), grpc::InsecureChannelCredentials()));
  for (const std::string rpc : {"Generate", "GenerateStream", "ScoreText", "ClassifyImage", "Tokenize"}) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto finish_step = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const auto call = stub.PrepareCall(&context, absl::StrCat("/longshort.v1.Inference/", rpc), &queue);
    call->StartCall(nullptr);
    ASSERT_TRUE(finish_step());
    call->WritesDone(nullptr);
    ASSERT_TRUE(finish_step());
    grpc::Status status;
    call->Finish(&status, nullptr);
    ASSERT_TRUE(finish_step());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << rpc << ": " << status.error_message();
    EXPECT_THAT(metrics_.Serialize(),
                testing::HasSubstr(absl::StrCat(R"(longshort_requests_total{code="CANCELLED",model="",rpc=")", rpc,
                                                R"(",version=""} 1)")));
  }
}

TEST_F(ServicesTest, AClosedGateRefuses) {
  gate_.Close();
  grpc::ClientContext context;
  v1::GenerateResponse response;
  const grpc::Status status = stub_->Generate(&context, request_, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now()), 0);
}

}  // namespace longshort::server::services_test
