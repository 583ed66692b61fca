// Calls by HTTP, of all protocols, with a scripted engine.

#include "server/http_rpc/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "server/http/http_endpoints.h"
#include "server/http_rpc/connect_codec.h"
#include "server/http_rpc/connect_front.h"
#include "server/longshort_v1/rpcs.h"
#include "server/open_inference_v2/rest_front.h"
#include "server/open_inference_v2/rpcs.h"
#include "server/openai/openai_front.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"
#include "tests/server/http/raw_client.h"

namespace longshort::server::http_call_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpCallTest : public ServingFixture {
 protected:
  HttpCallTest() {
    Serve(RegistryOf(std::make_unique<ScriptedEngine>()));
    environment_->limits.message_bytes = 1 << 20;
    environment_->message_memory = MessageBudget(1 << 20);
    auto endpoints = HttpEndpoints::Start({.address = {.host = "127.0.0.1", .port = 0}, .metrics = nullptr});
    EXPECT_TRUE(endpoints.ok()) << endpoints.status();
    endpoints_ = *std::move(endpoints);
    endpoints_->Serve({ConnectFront(*environment_, longshort_), OpenInferenceFront(*environment_, open_inference_),
                       OpenAiFront(*environment_, openai_)});
  }

  std::string Post(const std::string& path, const std::string& body) const {
    return Ask(endpoints_->address().port,
               absl::StrCat("POST ", path, " HTTP/1.1\r\nContent-Type: application/json\r\n",
                            "Connection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  }

  const std::vector<Rpc> longshort_ = LongshortV1Rpcs();
  const std::vector<Rpc> open_inference_ = OpenInferenceRpcs();
  const std::vector<Rpc> openai_ = OpenAiRpcs();
  std::unique_ptr<HttpEndpoints> endpoints_;
};

TEST_F(HttpCallTest, MessagesCountInTheBudgetOfAllThatAreRead) {
  const std::string text(100'000, 'x');
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"/longshort.v1.Inference/Tokenize", absl::StrCat(R"({"input": {"text": ")", text, R"("}, "wrong": 1})")},
      {"/v1/completions", absl::StrCat(R"({"prompt": ")", text, R"(", "wrong": 1})")},
      {"/v2/models/bytes/infer", absl::StrCat(R"({"id": ")", text, R"(", "wrong": 1})")}};
  {
    const auto others = Budget::Take(environment_->message_memory, 1 << 20);
    for (const auto& [path, body] : calls) {
      EXPECT_THAT(Post(path, body), AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Retry-After: 1"),
                                          HasSubstr("the messages that are being read hold 1048576 bytes")));
      EXPECT_THAT(Post(path, R"({"wrong": 1})"), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("wrong")))
          << "a short one is not measured";
    }
  }
  for (const auto& [path, body] : calls) {
    EXPECT_THAT(Post(path, body), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("wrong"))) << "there is room again";
  }
  EXPECT_EQ(environment_->message_memory->held(), 0);
}

// A client that stops within a message of a stream holds what it has sent.
TEST_F(HttpCallTest, PartsOfMessagesCountInTheBudget) {
  const std::string envelope = {0, 0, 0x0c, 0, 0};  // of a message of 786,432 bytes
  const std::string request = absl::StrCat(
      "POST /longshort.v1.Sessions/ImportSession HTTP/1.1\r\nContent-Type: application/connect+json\r\n",
      "Transfer-Encoding: chunked\r\n\r\n80000\r\n", envelope, std::string(0x80000 - envelope.size(), ' '), "\r\n");
  {
    const RawClient first(endpoints_->address().port);
    ASSERT_TRUE(first.Send(request));
    for (int i = 0; i < 1000 && environment_->message_memory->held() < 0x80000; ++i)
      absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(environment_->message_memory->held(), 0x80000);
    const auto others = Budget::Take(environment_->message_memory, 0x80000);
    const RawClient second(endpoints_->address().port);
    ASSERT_TRUE(second.Send(request));
    EXPECT_THAT(second.Receive(10'000), HasSubstr("resource_exhausted"));
  }
  for (int i = 0; i < 1000 && environment_->message_memory->held() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(environment_->message_memory->held(), 0);
}

// An exchange whose tasks the test runs. It keeps the most bytes that one was said to process.
class FakeExchange final : public HttpExchange {
 public:
  FakeExchange(HttpRequest request, std::string body) : request_(std::move(request)), body_(std::move(body)) {}

  HttpRequest& request() override { return request_; }
  void Read(absl::AnyInvocable<void(absl::StatusOr<std::string>)> received) override {
    Run(0, [this, received = std::move(received)]() mutable { received(std::exchange(body_, "")); });
  }
  void Answer(HttpResponse response, Done done) override {
    BeginStream(std::move(response)), EndStream("", std::move(done));
  }
  void BeginStream(HttpResponse head) override { status_ = head.status; }
  void Write(std::string /*part*/, Done done) override { done(true); }
  void EndStream(std::string /*last*/, Done done) override {
    done(true);
    const MutexLock lock(mutex_);
    answered_ = true;
    changed_.NotifyAll();
  }
  void WhenClosed(absl::AnyInvocable<void()> /*closed*/) override {}
  void SetTimer(absl::Time /*time*/, absl::AnyInvocable<void()> /*reached*/) override {}
  void Abort() override {}
  void Run(size_t bytes, absl::AnyInvocable<void()> task) override {
    const MutexLock lock(mutex_);
    largest_ = std::max(largest_, bytes);
    tasks_.push_back(std::move(task));
    changed_.NotifyAll();
  }

  // Runs all tasks until the answer. Returns the largest number of bytes of those that these have begun.
  size_t Serve() {
    MutexLock lock(mutex_);
    largest_ = 0;
    while (true) {
      changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return answered_ || !tasks_.empty(); });
      if (tasks_.empty()) return largest_;
      absl::AnyInvocable<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      task();
      lock.Lock();
    }
  }
  int status() const { return status_; }

 private:
  HttpRequest request_;
  std::string body_;
  int status_ = 0;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t largest_ ABSL_GUARDED_BY(mutex_) = 0;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
};

// Serves a stream of one message, and returns the largest number of bytes of a task after the first.
size_t BytesAtOnce(const CallEnvironment& environment, const std::vector<Rpc>& rpcs, const std::string& message,
                   bool is_compressed) {
  const auto rpc =
      std::find_if(rpcs.begin(), rpcs.end(), [](const Rpc& one) { return one.kind == RpcKind::kClientStream; });
  const auto size = static_cast<uint32_t>(message.size());
  std::string body = {static_cast<char>(is_compressed)};
  for (int shift = 24; shift >= 0; shift -= 8) body += static_cast<char>(size >> shift);
  HttpRequest request;
  request.method = "POST";
  request.path = "/longshort.v1.Sessions/ImportSession";
  request.fields = {{"content-type", "application/connect+json"}, {"connect-content-encoding", "gzip"}};
  auto codec = MakeConnectCodec(*rpc, request, environment.limits.message_bytes);
  EXPECT_TRUE(codec.ok()) << codec.status();
  const auto exchange = std::make_shared<FakeExchange>(std::move(request), body + message);
  HttpCall::Start(environment, *rpc, exchange, *std::move(codec));
  const size_t largest = exchange->Serve();
  EXPECT_NE(exchange->status(), 0);
  return largest;
}

TEST_F(HttpCallTest, LargeMessagesOfAStreamAreDecodedApart) {
  EXPECT_LT(BytesAtOnce(*environment_, longshort_, R"({"wrong": 1})", false), 100u);
  const std::string large = absl::StrCat(R"({"wrong": ")", std::string(100'000, 'x'), R"("})");
  EXPECT_EQ(BytesAtOnce(*environment_, longshort_, large, false), large.size());
  EXPECT_GT(BytesAtOnce(*environment_, longshort_, "small, and no one knows what it unpacks to", true), 1u << 30);
}

}  // namespace longshort::server::http_call_test
