// Clients that read slowly or not at all, over a real connection with a small window.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"

namespace longshort::server::slow_readers_test {

using ::testing::HasSubstr;

constexpr size_t kDeltaBytes = 1000;
// Far more than any buffer of the stream. A test that pushes all of them was never paused.
constexpr int kManyDeltas = 20'000;

// The text of the n-th delta, which is unique.
std::string Text(int n) { return absl::StrFormat("%0*d", kDeltaBytes, n); }

void Push(core::GenerationListener& listener, int n) {
  listener.OnDelta({.bytes = Text(n), .tokens = {core::GeneratedToken()}});
}

grpc::ByteBuffer BytesOf(const google::protobuf::Message& message) {
  const grpc::Slice bytes(message.SerializeAsString());
  return grpc::ByteBuffer(&bytes, 1);
}

// A unary call whose client sends its request but does not read.
class UnreadCall final {
 public:
  UnreadCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, grpc::ByteBuffer request)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(nullptr);
    EXPECT_TRUE(StepSucceeds());
    call_->WriteLast(request, {}, nullptr);
    EXPECT_TRUE(StepSucceeds());
  }
  ~UnreadCall() {
    if (!finished_) {
      context_.TryCancel();
      Finish();
    }
  }

  // The status of the call, which has no answer.
  grpc::StatusCode Finish() {
    finished_ = true;
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    EXPECT_FALSE(StepSucceeds());
    grpc::Status status;
    call_->Finish(&status, nullptr);
    EXPECT_TRUE(StepSucceeds());
    return status.error_code();
  }

 private:
  bool StepSucceeds() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

class SlowReadersTest : public ServingFixture {
 protected:
  SlowReadersTest() {
    auto engine = std::make_unique<ScriptedEngine>();
    engine_ = engine.get();
    auto classifier = std::make_unique<ScriptedClassifierEngine>();
    classifier_ = classifier.get();
    std::map<std::string, core::ServedModel::Kind> models;
    core::ServedLanguageModel speaker = std::move(*ByteModel());
    speaker.engine = std::move(engine);
    models["speaker"] = std::move(speaker);
    models["texts"] = TextClassifier(std::move(classifier));
    Serve(RegistryOf(std::move(models)));
    channel_ = ConnectWithSmallWindow();
    stub_ = v1::Inference::NewStub(channel_);
    request_.mutable_model()->set_name("speaker");
    request_.mutable_prompt()->set_text("p");
  }

  // Pushes deltas until the stream pauses its work. Returns their number.
  static int PushUntilPaused(const ScriptedEngine::Generation& generation) {
    int pushed = 0;
    while (!generation.request.context.paused->load() && pushed < kManyDeltas) Push(*generation.listener, pushed++);
    return pushed;
  }

  void ExpectCancelled(const std::string& rpc) {
    EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 0) << "the call has not ended";
    const std::string metrics = metrics_.Serialize();
    EXPECT_THAT(metrics, HasSubstr("longshort_slow_readers_cancelled_total{rpc=\"" + rpc + "\"} 1"));
    EXPECT_THAT(metrics, HasSubstr("longshort_requests_total{code=\"CANCELLED\""));
  }

  // Has the engine generate more than fits into the client's window, and finish.
  void AnswerAtLength() {
    const auto generation = engine_->TakeGenerations(1)[0];
    for (int n = 0; n < 100; ++n) Push(*generation.listener, n);
    generation.listener->OnFinished(absl::OkStatus(), {});
  }

  ScriptedEngine* engine_;
  ScriptedClassifierEngine* classifier_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
};

TEST_F(SlowReadersTest, AClientThatReadsSlowlyPausesItsWorkAndGetsEverything) {
  const auto reader = stub_->GenerateStream(&context_, request_);
  const auto generation = engine_->TakeGenerations(1)[0];
  const core::PauseFlag& paused = *generation.request.context.paused;
  v1::GenerateStreamResponse event;
  ASSERT_TRUE(reader->Read(&event) && event.has_start());  // until then nothing is written or paused
  const int pushed = PushUntilPaused(generation);
  EXPECT_GT(pushed * kDeltaBytes, 250U << 10);  // 256 KiB with the overhead of messages
  EXPECT_LT(pushed * kDeltaBytes, 400U << 10);  // plus the window and the pending message

  std::string text;
  while (paused.load() && reader->Read(&event)) text += event.delta().text();
  EXPECT_FALSE(paused.load());
  // Not at the first message: 64 KiB still wait, the pending message has as many, and the window has 16 KiB.
  EXPECT_GT(text.size(), pushed * kDeltaBytes - (150U << 10));

  Push(*generation.listener, pushed);
  generation.listener->OnFinished(absl::OkStatus(), {});
  while (reader->Read(&event)) text += event.delta().text();
  EXPECT_TRUE(reader->Finish().ok());
  std::string expected;
  for (int n = 0; n <= pushed; ++n) expected += Text(n);
  EXPECT_TRUE(text == expected) << text.size() << " bytes of " << expected.size();
}

TEST_F(SlowReadersTest, AClientThatReadsAlongPausesNothing) {
  const auto reader = stub_->GenerateStream(&context_, request_);
  const auto generation = engine_->TakeGenerations(1)[0];
  v1::GenerateStreamResponse event;
  ASSERT_TRUE(reader->Read(&event) && event.has_start());
  for (int n = 0; n < 1000; ++n) {
    Push(*generation.listener, n);
    EXPECT_FALSE(generation.request.context.paused->load());
    do {
      ASSERT_TRUE(reader->Read(&event));
    } while (event.has_keep_alive());
  }
  generation.listener->OnFinished(absl::OkStatus(), {});
  while (reader->Read(&event)) continue;
  EXPECT_TRUE(reader->Finish().ok());
}

// No message is pending, so a pause would never end.
TEST_F(SlowReadersTest, TokensWithNothingToShowPauseNothing) {
  request_.set_completions(16);
  const auto reader = stub_->GenerateStream(&context_, request_);
  v1::GenerateStreamResponse event;
  ASSERT_TRUE(reader->Read(&event) && event.has_start());
  const auto generations = engine_->TakeGenerations(16);
  // Each adds 4 bytes to the waiting bytes, 280 KiB in total. The writer merges them, and none makes a message.
  for (int n = 0; n < 4500; ++n) {
    for (const auto& generation : generations)
      generation.listener->OnDelta({.bytes = "", .tokens = {core::GeneratedToken()}});
  }
  // While an earlier message is pending, the work may be paused.
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  const core::PauseFlag& paused = *generations[0].request.context.paused;
  while (paused.load() && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(paused.load());
  for (const auto& generation : generations) generation.listener->OnFinished(absl::OkStatus(), {});
  int64_t tokens = 0;
  while (reader->Read(&event)) tokens += event.delta().token_count();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(tokens, 16 * 4500);
}

TEST_F(SlowReadersTest, AClientThatReadsNothingIsCancelledAndSoIsItsWork) {
  environment_->slow_reader_timeout = absl::Milliseconds(200);  // four times the keepalive interval
  const auto reader = stub_->GenerateStream(&context_, request_);
  auto generation = engine_->TakeGenerations(1)[0];
  PushUntilPaused(generation);
  while (!generation.request.context.cancelled->load()) std::this_thread::yield();
  // Later output of the engine is ignored and pauses nothing.
  while (generation.request.context.paused->load()) std::this_thread::yield();
  Push(*generation.listener, 0);
  generation.listener->OnFinished(absl::CancelledError("cancelled"), {});
  generation.listener = nullptr;  // it holds the call
  ExpectCancelled("GenerateStream");
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) continue;
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(SlowReadersTest, AClientThatLeavesTheEndUnreadIsCancelledToo) {
  environment_->slow_reader_timeout = absl::Milliseconds(200);
  environment_->keepalive_interval = absl::Hours(1);  // the write timer fires earlier
  const auto reader = stub_->GenerateStream(&context_, request_);
  {
    const auto generation = engine_->TakeGenerations(1)[0];
    PushUntilPaused(generation);
    generation.listener->OnFinished(absl::OkStatus(), {});
  }
  ExpectCancelled("GenerateStream");
  v1::GenerateStreamResponse event;
  while (reader->Read(&event)) continue;
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(SlowReadersTest, AnUnreadAnswerEndsItsCall) {
  SetPatience(absl::Milliseconds(200));
  UnreadCall call(channel_, "/longshort.v1.Inference/Generate", BytesOf(request_));
  AnswerAtLength();
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 0) << "the call has not ended";
  EXPECT_THAT(metrics_.Serialize(), HasSubstr(R"(longshort_slow_readers_cancelled_total{rpc="Generate"} 1)"));
  EXPECT_EQ(call.Finish(), grpc::StatusCode::CANCELLED);
}

TEST_F(SlowReadersTest, APendingAnswerHoldsNoModel) {
  const UnreadCall call(channel_, "/longshort.v1.Inference/Generate", BytesOf(request_));
  const std::weak_ptr<core::ServedModel> model = *models_->Find("speaker", 1);
  AnswerAtLength();
  ASSERT_TRUE(models_->Unload("speaker", 1).ok());
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (!model.expired() && absl::Now() < end) std::this_thread::yield();
  EXPECT_TRUE(model.expired());
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now()), 1) << "the client must not have read the answer";
}

// Answers of 50 KB each, of which a client without window reads nothing. They may take 1 MiB.
TEST_F(SlowReadersTest, UnreadAnswersEndWhenTheirMemoryIsFull) {
  constexpr int64_t kAnswerBytes = 50 * static_cast<int64_t>(kDeltaBytes), kBytes = int64_t{1} << 20;
  SetPatience(absl::Seconds(30), kBytes);
  const grpc::ByteBuffer request = BytesOf(request_);
  std::vector<std::unique_ptr<UnreadCall>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(std::make_unique<UnreadCall>(channel_, "/longshort.v1.Inference/Generate", request));
    const auto generation = engine_->TakeGenerations(1)[0];
    for (int n = 0; n < 50; ++n) Push(*generation.listener, n);
    generation.listener->OnFinished(absl::OkStatus(), {});
    EXPECT_LE(memory_->answer_bytes(), kBytes);
  }
  absl::Time end = absl::Now() + absl::Seconds(20);
  while (gate_.WaitUntilEmpty(absl::Now()) > kBytes / kAnswerBytes && absl::Now() < end) std::this_thread::yield();
  EXPECT_LE(gate_.WaitUntilEmpty(absl::Now()), kBytes / kAnswerBytes) << "calls are open still";
  EXPECT_EQ(calls.back()->Finish(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  calls.clear();
  end = absl::Now() + absl::Seconds(20);
  while (memory_->answer_bytes() > 0 && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(memory_->answer_bytes(), 0);
}

TEST_F(SlowReadersTest, ALongAnswerThatIsTakenEndsWell) {
  v1::GenerateResponse answer;
  grpc::Status status;
  std::thread client([&] { status = stub_->Generate(&context_, request_, &answer); });
  AnswerAtLength();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answer.completions(0).text().size(), 100 * kDeltaBytes);
  EXPECT_EQ(gate_.WaitUntilEmpty(absl::Now() + absl::Seconds(10)), 0);
}

TEST_F(SlowReadersTest, ASilentStreamIsNotCancelled) {
  environment_->slow_reader_timeout = absl::Milliseconds(500);
  environment_->keepalive_interval = absl::Milliseconds(1200);
  const auto reader = stub_->GenerateStream(&context_, request_);
  const auto generation = engine_->TakeGenerations(1)[0];
  v1::GenerateStreamResponse event;
  ASSERT_TRUE(reader->Read(&event) && event.has_start());
  ASSERT_TRUE(reader->Read(&event) && event.has_keep_alive());
  generation.listener->OnFinished(absl::OkStatus(), {});
  while (reader->Read(&event)) continue;
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(SlowReadersTest, AClientThatSendsDocumentsAndReadsNoAnswersIsCancelled) {
  environment_->slow_reader_timeout = absl::Milliseconds(200);
  const auto stream = stub_->ScoreTexts(&context_);
  // Ends with the call, because so many answers exceed the window.
  std::thread writer([&stream] {
    v1::ScoreTextsRequest document;
    document.mutable_options()->mutable_model()->set_name("texts");
    document.mutable_input()->set_text("x");
    for (int n = 0; n < kManyDeltas && stream->Write(document); ++n) document.clear_options();
  });
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (gate_.WaitUntilEmpty(absl::Now() + absl::Milliseconds(1)) != 0 ||
         metrics_.Serialize().find("code=") == std::string::npos) {
    ASSERT_LT(absl::Now(), end);
    for (const auto& item : classifier_->TakeItems(0)) item.listener->OnFinished(ScoresFor(1));
  }
  ExpectCancelled("ScoreTexts");
  writer.join();
  v1::ScoreTextsResponse answer;
  while (stream->Read(&answer)) continue;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace longshort::server::slow_readers_test
