// ModelStreamInfer over a real connection, with scripted engines.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/schedule/refusal.h"
#include "tests/server/fronts/open_inference/open_inference_fixture.h"

namespace longshort::server::stream_infer_test {

using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class StreamInferTest : public OpenInferenceFixture {
 protected:
  // Opens the stream.
  void Open(std::shared_ptr<grpc::Channel> channel = nullptr) {
    if (channel != nullptr) open_stub_ = inference::GRPCInferenceService::NewStub(channel);
    stream_ = open_stub_->ModelStreamInfer(&context_);
  }
  void Send(ModelInferRequest request, const std::string& id) {
    request.set_id(id);
    ASSERT_TRUE(stream_->Write(request));
  }
  ModelStreamInferResponse Read() {
    ModelStreamInferResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }
  // The id of the next answer, with its text and finish reason or its error.
  std::string ReadLine() {
    const ModelStreamInferResponse response = Read();
    const auto& answer = response.infer_response();
    std::string line = answer.id();
    if (!response.error_message().empty()) return line + " error " + response.error_message();
    for (const auto& output : answer.outputs()) {
      if (output.datatype() != "BYTES") continue;
      line += " " + output.contents().bytes_contents(0);
    }
    return line + (answer.parameters().at("triton_final_response").bool_param() ? " final" : "");
  }
  grpc::Status Close() {
    stream_->WritesDone();
    ModelStreamInferResponse response;
    EXPECT_FALSE(stream_->Read(&response));
    return stream_->Finish();
  }

  static ModelInferRequest Prompt() { return TypedRequest("speaker", "prompt", {"abc"}); }
  static ModelInferRequest Document() { return TypedRequest("texts", "document", {"ab"}); }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>> stream_;
};

TEST_F(StreamInferTest, AGenerationIsStreamedAndItsEndIsMarked) {
  Open();
  Send(Prompt(), "g");
  const auto listener = speaker_->TakeGenerations(1)[0].listener;
  listener->OnDelta(Bytes("caf\xC3"));
  EXPECT_EQ(ReadLine(), "g caf ");
  listener->OnDelta(Bytes("\xA9"));
  EXPECT_EQ(ReadLine(), "g \xC3\xA9 ");
  core::GenerationSummary summary = Summary(2);
  summary.finish_reason = core::FinishReason::kStopString;
  listener->OnFinished(absl::OkStatus(), summary);
  const ModelStreamInferResponse last = Read();
  const auto& answer = last.infer_response();
  EXPECT_TRUE(answer.parameters().at("triton_final_response").bool_param());
  EXPECT_EQ(answer.parameters().at("generated_tokens").int64_param(), 2);
  EXPECT_EQ(answer.outputs(1).contents().bytes_contents(0), "stop");
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, ARequestTakesMemoryOfTheClientUntilItsAnswerIsRead) {
  const std::shared_ptr<Budget>& all = environment_->message_memory->all();
  Open();
  Send(Prompt(), "a");
  const auto first = speaker_->TakeGenerations(1)[0].listener;
  const int64_t with_one = all->held();  // perhaps with its message still
  Send(Prompt(), "b");
  auto second = speaker_->TakeGenerations(1)[0].listener;
  EXPECT_GE(all->held(), with_one + 3000);
  second->OnFinished(absl::OkStatus(), Summary(1));
  second = nullptr;
  EXPECT_THAT(ReadLine(), StartsWith("b"));
  for (int i = 0; i < 20'000 && all->held() > with_one; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_LE(all->held(), with_one);
  first->OnFinished(absl::OkStatus(), Summary(1));
  EXPECT_THAT(ReadLine(), StartsWith("a"));
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, AnEmptyFinalAnswerComesIfItIsAskedFor) {
  Open();
  ModelInferRequest request = Prompt();
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  Send(request, "g");
  const auto listener = speaker_->TakeGenerations(1)[0].listener;
  listener->OnDelta(Bytes("a"));
  EXPECT_EQ(ReadLine(), "g a ");
  listener->OnFinished(absl::OkStatus(), Summary(1));
  EXPECT_EQ(ReadLine(), "g  length");
  const ModelStreamInferResponse last = Read();
  EXPECT_EQ(last.infer_response().outputs_size(), 0);
  EXPECT_TRUE(last.infer_response().parameters().at("triton_final_response").bool_param());
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, CompletionsAreNumbered) {
  Open();
  ModelInferRequest request = Prompt();
  (*request.mutable_parameters())["completions"].set_int64_param(2);
  Send(request, "g");
  const auto generations = speaker_->TakeGenerations(2);
  generations[1].listener->OnDelta(Bytes("b"));
  const ModelStreamInferResponse piece = Read();
  EXPECT_EQ(piece.infer_response().parameters().at("completion").int64_param(), 1);
  generations[1].listener->OnFinished(absl::OkStatus(), Summary(1));
  EXPECT_EQ(ReadLine(), "g  length");
  generations[0].listener->OnFinished(absl::OkStatus(), Summary(1));
  EXPECT_EQ(ReadLine(), "g  length final");
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, RequestsWithOneAnswerAreAnsweredInTheirOrder) {
  Open();
  Send(Document(), "1");
  const auto first = texts_->TakeItems(1);
  Send(Document(), "2");
  const auto second = texts_->TakeItems(1);
  Send(Prompt(), "g");
  const auto generation = speaker_->TakeGenerations(1)[0].listener;
  second[0].listener->OnFinished(ScoresFor(1));
  generation->OnDelta(Bytes("a"));
  EXPECT_EQ(ReadLine(), "g a ") << "it does not wait for the others";
  first[0].listener->OnFinished(ScoresFor(0));
  EXPECT_EQ(ReadLine(), "1 final");
  EXPECT_EQ(ReadLine(), "2 final");
  generation->OnFinished(absl::OkStatus(), Summary(1));
  EXPECT_EQ(ReadLine(), "g  length final");
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, AFailedRequestHasAnErrorAndTheStreamStaysOpen) {
  Open();
  Send(TypedRequest("unknown", "document", {"a"}), "lost");
  EXPECT_THAT(ReadLine(), StartsWith("lost error NOT_FOUND: "));
  Send(TypedRequest("texts", "document", {"far too long"}), "long");
  EXPECT_THAT(ReadLine(), StartsWith("long error INVALID_ARGUMENT: number of tokens of document[0] is 12"));
  speaker_->on_submit = [](int) {
    absl::Status full = absl::ResourceExhaustedError("full");
    core::SetRefusal(full, {.retry_after = absl::Milliseconds(1500), .queue_depth = 17});
    return full;
  };
  Send(Prompt(), "full");
  const ModelStreamInferResponse refused = Read();
  EXPECT_EQ(refused.error_message(), "RESOURCE_EXHAUSTED: full");
  EXPECT_EQ(refused.infer_response().id(), "full");
  EXPECT_EQ(refused.infer_response().parameters().at("retry_after_ms").int64_param(), 1500);
  EXPECT_TRUE(refused.infer_response().parameters().at("triton_final_response").bool_param());
  Send(Document(), "fine");
  End(*texts_, 1);
  EXPECT_EQ(ReadLine(), "fine final");
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, AnErrorRepeatsOnlyTheBeginningOfALongName) {
  Open();
  Send(TypedRequest(std::string(1000, 'm'), "document", {"a"}), std::string(1000, 'i'));
  const ModelStreamInferResponse refused = Read();
  EXPECT_EQ(refused.error_message(), "INVALID_ARGUMENT: number of bytes of id is 1000; it must be in [0, 256]");
  EXPECT_EQ(refused.infer_response().id(), std::string(256, 'i'));
  EXPECT_EQ(refused.infer_response().model_name(), std::string(256, 'm'));
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, AFailureInTheMiddleIsTheLastAnswer) {
  Open();
  Send(Prompt(), "g");
  const auto listener = speaker_->TakeGenerations(1)[0].listener;
  listener->OnDelta(Bytes("a"));
  EXPECT_EQ(ReadLine(), "g a ");
  listener->OnFinished(absl::InternalError("the model failed"), Summary(1));
  EXPECT_EQ(ReadLine(), "g error INTERNAL: the model failed");
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, ACancelledStreamCancelsAllThatIsInWork) {
  Open();
  Send(Prompt(), "g");
  const auto generation = speaker_->TakeGenerations(1)[0];
  Send(Document(), "d");
  const auto item = texts_->TakeItems(1);
  EXPECT_FALSE(generation.request.context.cancelled->load());
  context_.TryCancel();
  while (!generation.request.context.cancelled->load()) std::this_thread::yield();
  while (!item[0].request.context.cancelled->load()) std::this_thread::yield();
  generation.listener->OnFinished(absl::CancelledError("cancelled"), Summary(0));
  item[0].listener->OnFinished(absl::CancelledError("cancelled"));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(StreamInferTest, AMalformedRequestEndsTheStream) {
  Open();
  Send(Document(), "1");
  const auto first = texts_->TakeItems(1);
  // A string field that is not UTF-8.
  ModelInferRequest request;
  request.set_model_name("\xFF");
  stream_->Write(request);
  while (!first[0].request.context.cancelled->load()) std::this_thread::yield();
  first[0].listener->OnFinished(absl::CancelledError("cancelled"));
  EXPECT_EQ(ReadLine(), "1 error CANCELLED: cancelled");
  const grpc::Status status = Close();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("inference.ModelInferRequest"));
}

TEST_F(StreamInferTest, AStoppingServerAnswersPendingRequestsAndEndsTheStream) {
  Open();
  Send(Prompt(), "g");
  auto listener = speaker_->TakeGenerations(1)[0].listener;
  gate_.Close();
  listener->OnDelta(Bytes("a"));
  EXPECT_EQ(ReadLine(), "g a ");
  listener->OnFinished(absl::OkStatus(), Summary(1));
  listener.reset();
  EXPECT_EQ(ReadLine(), "g  length final");
  ModelStreamInferResponse response;
  EXPECT_FALSE(stream_->Read(&response));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(gate_.WaitUntilEmpty(MonotonicNow() + absl::Seconds(30)), 1)
      << "the stream was cut off, its request was not";
}

TEST_F(StreamInferTest, AReaderThatIsSlowPausesItsGeneration) {
  Open(ConnectWithSmallWindow());
  Send(Prompt(), "g");
  const auto generation = speaker_->TakeGenerations(1)[0];
  const std::string text(1000, 'x');
  int64_t sent = 0;
  for (; sent < 20'000 && !generation.request.context.paused->load(); ++sent) generation.listener->OnDelta(Bytes(text));
  ASSERT_LT(sent, 20'000);
  std::string read;
  while (generation.request.context.paused->load()) {
    const ModelStreamInferResponse piece = Read();
    read += piece.infer_response().outputs(0).contents().bytes_contents(0);
  }
  generation.listener->OnFinished(absl::OkStatus(), Summary(sent));
  for (bool last = false; !last;) {
    const ModelStreamInferResponse piece = Read();
    read += piece.infer_response().outputs(0).contents().bytes_contents(0);
    last = piece.infer_response().parameters().at("triton_final_response").bool_param();
  }
  EXPECT_EQ(read.size(), sent * text.size());
  EXPECT_TRUE(Close().ok());
}

TEST_F(StreamInferTest, AClientThatReadsNothingIsCancelled) {
  environment_->slow_reader_timeout = absl::Milliseconds(100);
  Open(ConnectWithSmallWindow());
  Send(Prompt(), "g");
  const auto generation = speaker_->TakeGenerations(1)[0];
  const std::string text(1000, 'x');
  while (!generation.request.context.cancelled->load()) {
    if (generation.request.context.paused->load())
      std::this_thread::yield();
    else
      generation.listener->OnDelta(Bytes(text));
  }
  generation.listener->OnFinished(absl::CancelledError("cancelled"), Summary(1));
  ModelStreamInferResponse response;
  while (stream_->Read(&response)) {
  }
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(StreamInferTest, AStreamHasOnlySoManyRequestsInWork) {
  Open();
  const int max = static_cast<int>(environment_->limits.stream_documents);
  for (int i = 0; i < 2 * max; ++i) Send(Document(), std::to_string(i));
  auto items = texts_->TakeItems(max);
  EXPECT_EQ(items.size(), max);
  EXPECT_EQ(texts_->size(), 0);
  for (auto& item : items) item.listener->OnFinished(ScoresFor(1));
  for (int i = 0; i < max; ++i) EXPECT_EQ(ReadLine(), std::to_string(i) + " final");
  for (auto& item : texts_->TakeItems(max)) item.listener->OnFinished(ScoresFor(1));
  for (int i = max; i < 2 * max; ++i) EXPECT_EQ(ReadLine(), std::to_string(i) + " final");
  EXPECT_TRUE(Close().ok());
}

}  // namespace longshort::server::stream_infer_test
