#include "clients/cpp/client.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/clients/fake_server.h"

namespace longshort {
namespace {

v1::GenerateStreamResponse Delta(const std::string& text) {
  v1::GenerateStreamResponse message;
  message.mutable_delta()->set_text(text);
  return message;
}

TEST(Client, MessagesArriveWhileTheStreamRuns) {
  FakeServer server;
  server.stream = {Delta("a"), Delta("b")};
  server.stream_hangs = true;  // ends only by Cancel, so what was read before came while it ran
  Client client({.server = server.address()});
  std::string text;
  const absl::Status status = client.GenerateStream({}, [&](const v1::GenerateStreamResponse& message) {
    text += message.delta().text();
    if (text == "ab") client.Cancel();
  });
  EXPECT_EQ(text, "ab");
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST(Client, CancelSaysWhetherACallWasRunning) {
  FakeServer server;
  Client client({.server = server.address()});
  EXPECT_FALSE(client.Cancel());
  EXPECT_TRUE(client.ListModels().ok());
  EXPECT_FALSE(client.Cancel());
}

TEST(Client, ACancelledCallLeavesTheNextOneAlone) {
  FakeServer server;
  server.stream = {Delta("a")};
  server.stream_hangs = true;
  Client client({.server = server.address()});
  EXPECT_FALSE(client.GenerateStream({}, [&](const v1::GenerateStreamResponse&) { client.Cancel(); }).ok());
  EXPECT_TRUE(client.ListModels().ok());
}

TEST(Client, TheServersMessageArrivesAsItIs) {
  FakeServer server;
  server.status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "sampling.top_p: 2 is over the limit 1");
  Client client({.server = server.address()});
  const absl::StatusOr<v1::TokenizeResponse> response = client.Tokenize({});
  EXPECT_EQ(response.status(), absl::InvalidArgumentError("sampling.top_p: 2 is over the limit 1"));
}

TEST(Client, AnswersOverGrpcsDefaultLimitArrive) {
  FakeServer server;
  v1::TextScore& score = *server.score.add_scores();
  for (int i = 0; i < 1'000'000; ++i) score.add_tokens()->set_id(i);  // over 4 MiB
  Client client({.server = server.address()});
  const absl::StatusOr<v1::ScoreTextResponse> response = client.ScoreText({});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->scores(0).tokens_size(), 1'000'000);
}

}  // namespace
}  // namespace longshort
