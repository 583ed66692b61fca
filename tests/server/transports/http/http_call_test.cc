// Calls by HTTP, of all protocols, with a scripted engine.

#include "server/transports/http/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/fronts/json/connect_codec.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/openai/openai.h"
#include "server/transports/http/http_endpoints.h"
#include "tests/server/fakes/scripted_engine.h"
#include "tests/server/fakes/serving_fixture.h"
#include "tests/server/transports/http/raw_client.h"

namespace longshort::server::http_call_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpCallTest : public ServingFixture {
 protected:
  HttpCallTest() {
    Serve(RegistryOf(std::make_unique<ScriptedEngine>()));
    environment_->limits.message_bytes = 1 << 20;
    environment_->message_memory = MessageBudgets(2 << 20);
    auto endpoints = HttpEndpoints::Start({.address = {.host = "127.0.0.1", .port = 0}, .metrics = nullptr});
    EXPECT_TRUE(endpoints.ok()) << endpoints.status();
    endpoints_ = *std::move(endpoints);
    endpoints_->Serve({ConnectFront(*environment_, longshort_), OpenInferenceFront(*environment_, open_inference_),
                       OpenAiFront(*environment_)});
  }

  std::string Post(const std::string& path, const std::string& body) const {
    return Ask(endpoints_->address().port,
               absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
                            "Connection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
  }

  const std::vector<Rpc> longshort_ = LongshortV1Rpcs();
  const std::vector<Rpc> open_inference_ = OpenInferenceRpcs();
  std::unique_ptr<HttpEndpoints> endpoints_;
};

TEST_F(HttpCallTest, MessagesCountInTheBudgetOfAllThatAreRead) {
  const std::string text(100'000, 'x');
  const std::vector<std::pair<std::string, std::string>> calls = {
      {"/longshort.v1.Inference/Tokenize", absl::StrCat(R"({"input": {"text": ")", text, R"("}, "wrong": 1})")},
      {"/v1/completions", absl::StrCat(R"({"prompt": ")", text, R"(", "n": "wrong"})")},
      {"/v2/models/bytes/infer", absl::StrCat(R"({"id": ")", text, R"(", "wrong": 1})")}};
  {
    const auto others = Budget::Take(environment_->message_memory->Of("ipv4:127.0.0.1"), 1'000'000);
    for (const auto& [path, body] : calls) {
      EXPECT_THAT(Post(path, body), AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Retry-After: 1"),
                                          HasSubstr("messages that are being read hold 1000000 bytes")));
      EXPECT_THAT(Post(path, R"({"wrong": 1})"), StartsWith("HTTP/1.1 400 ")) << "a short one has room";
    }
  }
  for (const auto& [path, body] : calls) {
    EXPECT_THAT(Post(path, body), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("wrong"))) << "there is room again";
  }
  EXPECT_EQ(environment_->message_memory->all()->held(), 0);
}

// A client that stops within a message of a stream holds what it has sent.
TEST_F(HttpCallTest, PartsOfMessagesCountInTheBudget) {
  const std::string envelope = {0, 0, 0x0c, 0, 0};  // of a message of 786,432 bytes
  const std::string request = absl::StrCat(
      "POST /longshort.v1.Sessions/ImportSession HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/connect+json\r\n",
      "Transfer-Encoding: chunked\r\n\r\n80000\r\n", envelope, std::string(0x80000 - envelope.size(), ' '), "\r\n");
  {
    const RawClient first(endpoints_->address().port);
    ASSERT_TRUE(first.Send(request));
    for (int i = 0; i < 1000 && environment_->message_memory->all()->held() < 0x80000; ++i)
      absl::SleepFor(absl::Milliseconds(10));
    const auto others = Budget::Take(environment_->message_memory->Of("ipv4:127.0.0.1"), 0x70000);
    const RawClient second(endpoints_->address().port);
    ASSERT_TRUE(second.Send(request));
    EXPECT_THAT(second.Receive(10'000), HasSubstr("resource_exhausted"));
  }
  for (int i = 0; i < 1000 && environment_->message_memory->all()->held() > 0; ++i)
    absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(environment_->message_memory->all()->held(), 0);
}

// A message that takes long waits for its turn, and one that does not passes it.
TEST_F(HttpCallTest, LargeMessagesAreReadByThePool) {
  absl::Notification begun, go;
  environment_->work->Submit({}, [&] {
    begun.Notify();
    go.WaitForNotification();
    return absl::ZeroDuration();
  });
  begun.WaitForNotification();
  const std::string large = absl::StrCat(R"({"wrong": ")", std::string(100'000, 'x'), R"("})");
  std::thread client([&] { EXPECT_THAT(Post("/v1/completions", large), StartsWith("HTTP/1.1 400 ")); });
  while (environment_->work->size() < 2) std::this_thread::yield();
  EXPECT_THAT(Post("/v1/completions", R"({"wrong": 1})"), StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(environment_->work->size(), 2);
  go.Notify();
  client.join();
}

}  // namespace longshort::server::http_call_test
