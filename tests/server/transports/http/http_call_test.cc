// Calls by HTTP, of all protocols, with a scripted engine.

#include "server/transports/http/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "server/access/access_control.h"
#include "server/fronts/json/connect_codec.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/openai/openai.h"
#include "server/transports/http/http_endpoints.h"
#include "tests/base/temporary_directory.h"
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
    auto engine = std::make_unique<ScriptedEngine>();
    engine->on_submit = [this](int) { return ++submissions_, absl::UnavailableError("it only counts"); };
    Serve(RegistryOf(std::move(engine)));
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

  std::atomic<int> submissions_ = 0;
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

// Two hundred bytes ask for 80 completions: to begin them takes longer than the I/O thread may.
TEST_F(HttpCallTest, ManyCompletionsOfAShortMessageAreBegunByThePool) {
  absl::Notification begun, go;
  environment_->work->Submit({}, [&] {
    begun.Notify();
    go.WaitForNotification();
    return absl::ZeroDuration();
  });
  begun.WaitForNotification();
  const auto ask = [&](const std::string& stream) {
    return Post("/v1/completions", R"({"prompt": ["a","b","c","d","e"], "n": 16, "max_tokens": 9)" + stream + "}");
  };
  std::thread whole([&] { EXPECT_THAT(ask(""), StartsWith("HTTP/1.1 503 ")); });
  std::thread streamed([&] { EXPECT_THAT(ask(R"(, "stream": true)"), StartsWith("HTTP/1.1 503 ")); });
  const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds);
  while (environment_->work->size() < 3 && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(environment_->work->size(), 3) << "the two wait behind the first task";
  EXPECT_EQ(submissions_, 0);
  EXPECT_THAT(Post("/v1/completions", R"({"prompt": "a"})"), StartsWith("HTTP/1.1 503 ")) << "this one does not wait";
  EXPECT_EQ(submissions_, 1);
  go.Notify();
  whole.join();
  streamed.join();
  EXPECT_EQ(submissions_, 3);
}

// The router looks the caller up, to count its calls; the call does not do it again.
TEST_F(HttpCallTest, AGrantThatTheRouterFoundIsTheCalls) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/tokens";
  auto hash = Sha256::Create();
  ASSERT_TRUE(hash.ok() && hash->Update("secret").ok());
  std::ofstream(path) << "alice token-sha256=" << absl::BytesToHexString(*hash->Finish()) << " scopes=infer\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const auto access = AccessControl::Open({.token_file = path}, [](const absl::Status& /*status*/) {});
  ASSERT_TRUE(access.ok()) << access.status();
  const auto caller = (*access)->Identify({.authorization = "Bearer secret"}, {}, MonotonicNow());
  ASSERT_TRUE(caller.ok());
  environment_->access = access->get();
  const auto start = [&](HttpEndpoints::ClientOf client_of) {
    auto endpoints = HttpEndpoints::Start(
        {.address = {.host = "127.0.0.1", .port = 0}, .metrics = nullptr, .client_of = std::move(client_of)});
    EXPECT_TRUE(endpoints.ok()) << endpoints.status();
    (*endpoints)->Serve({OpenAiFront(*environment_)});
    return *std::move(endpoints);
  };
  const auto without = start([](HttpRequest& /*head*/) { return "alice"; });
  EXPECT_THAT(Get(without->address().port, "/v1/models"), StartsWith("HTTP/1.1 401 "));
  const auto with = start([&](HttpRequest& head) {
    head.grant = caller->grant();
    return "alice";
  });
  EXPECT_THAT(Get(with->address().port, "/v1/models"), StartsWith("HTTP/1.1 200 "));
}

class PlainCodec final : public HttpCodec {
  HttpResponse WriteError(const absl::Status& status) override { return ProblemDetails(status); }
};

// A string that was written in steps may have room for as much again.
TEST_F(HttpCallTest, AnAnswerThatWaitsHoldsNoMoreThanItsBytes) {
  constexpr size_t kBytes = 16 << 20;  // more than sockets hold
  constexpr CallNames kNames(kNoFields, "test/Large", {.scope = Scope::kInfer});
  const auto work = WorkThatAnswers<int, CallAnswer>([](Call&, int&) { return absl::OkStatus(); },
                                                     AtOnce([](CallRecord&, int) -> absl::StatusOr<CallAnswer> {
                                                       return JsonAnswer(1, [] {
                                                         std::string json;
                                                         json.reserve(2 * kBytes);
                                                         json.append(kBytes, ' ');
                                                         return json;
                                                       });
                                                     }));
  static const Operation operation = {.names = kNames, .work = work};
  endpoints_->Serve({[&](const HttpRequest& /*head*/) -> std::optional<HttpPlan> {
    HttpPlan plan{.methods = {"GET"}, .write_error = ProblemDetails};
    ServeCalls(
        *environment_, operation, 0, [](const HttpRequest& /*head*/) { return std::make_unique<PlainCodec>(); }, plan);
    return plan;
  }});
  const RawClient client(endpoints_->address().port);
  ASSERT_TRUE(client.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds);
  while (memory_->answer_bytes() != kBytes && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(memory_->answer_bytes(), kBytes);
}

}  // namespace longshort::server::http_call_test
