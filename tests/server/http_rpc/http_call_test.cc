// Calls by HTTP, of all protocols, with a scripted engine.

#include "server/http_rpc/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/http_endpoints.h"
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

}  // namespace longshort::server::http_call_test
