#include "clients/cpp/client.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "clients/cpp/running_call.h"
#include "gtest/gtest.h"
#include "tests/clients/fake_server.h"

namespace longshort::client::client_test {

// Reads `count` documents, whose names and texts are their places, and counts them.
class Documents final {
 public:
  explicit Documents(int count) : count_(count) {}

  std::optional<Document> Next() {
    if (read_ == count_) return std::nullopt;
    const std::string place = absl::StrCat(read_++);
    v1::ScoreTextsRequest request;
    request.mutable_input()->set_text(place);
    return Document{place, request};
  }
  int read() const { return read_; }

 private:
  const int count_;
  std::atomic<int> read_ = 0;
};

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

TEST(Client, EachCallSendsItsSessionInTheMetadata) {
  FakeServer server;
  Client client({.server = server.address()});
  const auto session_sent = [&server](const std::string& expected) {
    return std::exchange(server.session_header, "?") == expected;
  };
  v1::GenerateRequest generate;
  EXPECT_TRUE(client.Generate(generate).ok() && session_sent(""));
  generate.mutable_session()->set_id("talk");
  EXPECT_TRUE(client.Generate(generate).ok() && session_sent("talk"));
  EXPECT_TRUE(client.GenerateStream(generate, [](const auto&) {}).ok() && session_sent("talk"));
  v1::ScoreTextRequest score;
  score.mutable_session()->set_id("reading");
  EXPECT_TRUE(client.ScoreText(score).ok() && session_sent("reading"));
  v1::CloseSessionRequest closed;
  closed.set_session_id("closed");
  EXPECT_TRUE(client.CloseSession(closed).ok() && session_sent("closed"));
  v1::ExportSessionRequest exported;
  exported.set_session_id("out");
  const auto read_all = [](Client::NextPart next) {
    for (v1::SessionPart part; next(part);) continue;
  };
  EXPECT_TRUE(client.ExportSession(exported, read_all).ok() && session_sent("out"));
  v1::ImportBeginning imported;
  imported.set_session_id("in");
  EXPECT_TRUE(client.ImportSession(imported, [](auto&) { return false; }).ok() && session_sent("in"));
}

TEST(Client, ASessionsNameThatIsNoMetadataReachesTheServer) {
  FakeServer server;
  Client client({.server = server.address()});
  v1::GenerateRequest request;
  request.mutable_session()->set_id("a\nb\xC3\xA9");
  EXPECT_TRUE(client.Generate(request).ok());
  EXPECT_EQ(server.generate_request.session().id(), request.session().id());
  EXPECT_EQ(server.session_header, "");
}

TEST(Client, CancelSaysWhetherACallWasRunning) {
  FakeServer server;
  Client client({.server = server.address()});
  EXPECT_TRUE(client.ListModels().ok());
  EXPECT_FALSE(client.Cancel());
}

TEST(Client, BehindCancelEveryCallIsCancelled) {
  FakeServer server;
  server.stream = {Delta("a")};
  server.stream_hangs = true;
  Client client({.server = server.address()});
  EXPECT_FALSE(client.GenerateStream({}, [&](const v1::GenerateStreamResponse&) { client.Cancel(); }).ok());
  EXPECT_TRUE(CancelledHere(client.ListModels().status()));
  EXPECT_TRUE(CancelledHere(client.GenerateStream({}, [](const v1::GenerateStreamResponse&) {})));
}

TEST(Client, AnExportThatIsNotReadToItsEndIsCancelled) {
  FakeServer server;
  server.session.resize(1000);
  for (v1::SessionPart& part : server.session) part.set_data(std::string(1 << 16, 'x'));
  Client client({.server = server.address()});
  EXPECT_TRUE(client
                  .ExportSession({},
                                 [](Client::NextPart next) {
                                   v1::SessionPart part;
                                   EXPECT_TRUE(next(part));
                                 })
                  .ok());
  EXPECT_FALSE(client.Cancel());
}

TEST(Client, StatusesKeepWhenTheServerWantsToBeAskedAgain) {
  FakeServer server;
  server.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "it is full");
  Client client({.server = server.address(), .timeout = absl::Seconds(2)});  // not enough for another attempt
  const auto retry_after = [&] { return RetryAfter(client.CloseSession({})); };
  EXPECT_EQ(retry_after(), std::nullopt);
  server.pushback = "2500";
  EXPECT_EQ(retry_after(), absl::Milliseconds(2500));
  server.pushback = "-1";
  EXPECT_EQ(retry_after(), std::nullopt);
}

TEST(Client, AFullServerIsAskedAgainWhenItSays) {
  FakeServer server;
  server.score_document = [](const v1::ScoreTextsRequest& /*request*/) { return v1::ScoreTextsResponse(); };
  server.ends_at_once = {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "it is full")};
  server.pushback = "1500";  // longer than gRPC's first wait would be
  Client client({.server = server.address()});
  const absl::Time begun = absl::Now();
  int answers = 0;
  Documents documents(1);
  const absl::Status status = client.ScoreTexts(
      {}, 1, [&] { return documents.Next(); }, [&](const auto&...) { ++answers; });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answers, 1);
  EXPECT_GE(absl::Now() - begun, absl::Milliseconds(1400));
}

// The server's refusal may arrive before, while or after the first document is written.
TEST(Client, ARefusedStreamIsRetriedWithAllDocuments) {
  FakeServer server;
  server.score_document = [](const v1::ScoreTextsRequest& /*request*/) { return v1::ScoreTextsResponse(); };
  server.pushback = "1";
  Client client({.server = server.address()});
  for (int i = 0; i < 500; ++i) {
    server.ends_at_once = {grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "it is full")};
    Documents documents(3);
    int answered = 0;
    const absl::Status status = client.ScoreTexts(
        {}, 4, [&] { return documents.Next(); }, [&](const auto&...) { ++answered; });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(answered, 3);
  }
}

TEST(Client, ANegativePushbackStopsRetries) {
  FakeServer server;
  server.ends_at_once = {2, grpc::Status(grpc::StatusCode::UNAVAILABLE, "it is stopping")};
  server.pushback = "-1";
  Client client({.server = server.address()});
  Documents documents(1);
  const absl::Status status = client.ScoreTexts(
      {}, 1, [&] { return documents.Next(); }, [](const auto&...) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.ends_at_once.size(), 1);
}

// The rule of the Python client.
TEST(Client, ACallIsRepeatedUnlessItMayHaveContinuedASession) {
  FakeServer server;
  server.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  // A call that is repeated passes this deadline, whose half is the wait at most.
  Client client({.server = server.address(), .timeout = absl::Seconds(1)});
  const auto calls_of = [&](const v1::GenerateRequest& request) {
    server.generate_calls = 0;
    EXPECT_FALSE(client.Generate(request).ok());
    return server.generate_calls;
  };
  v1::GenerateRequest request;
  EXPECT_GT(calls_of(request), 1);
  request.mutable_session()->set_id("talk");
  EXPECT_EQ(calls_of(request), 1);
  request.mutable_session()->set_expected_tokens(5);
  EXPECT_GT(calls_of(request), 1);
  for (const char* reason : {"CERTIFICATE_VERIFY_FAILED", "SSL routines::certificate verify failed"}) {
    server.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, reason);
    EXPECT_EQ(calls_of(request), 1);
  }
  server.status = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max");
  EXPECT_EQ(calls_of(request), 1);
  request.mutable_session()->clear_expected_tokens();
  server.status = grpc::Status(grpc::StatusCode::ABORTED, "the session is in use");
  EXPECT_GT(calls_of(request), 1);
}

TEST(Client, CallsAboutModelsAndSessionsAreRepeatedLikeAllOthers) {
  FakeServer server;
  server.models.resize(1);
  server.pushback = "1";
  Client client({.server = server.address()});
  const auto is_repeated = [&](const absl::Status& status) { return status.ok() && server.refusals.exchange(2) == 0; };
  server.refusals = 2;
  EXPECT_TRUE(is_repeated(client.ListModels().status()));
  EXPECT_TRUE(is_repeated(client.GetModel({}).status()));
  EXPECT_TRUE(is_repeated(client.ListSessions({}).status()));
  EXPECT_TRUE(is_repeated(client.CloseSession({})));
  EXPECT_TRUE(is_repeated(client.Tokenize({}).status()));
}

TEST(Client, ASessionThatALostAnswerHasClosedIsClosed) {
  FakeServer server;
  server.status = grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no session talk");
  Client client({.server = server.address()});
  EXPECT_EQ(client.CloseSession({}), absl::NotFoundError("there is no session talk"));
  server.ends_at_once = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")};
  EXPECT_TRUE(client.CloseSession({}).ok());
  EXPECT_TRUE(server.ends_at_once.empty());
}

TEST(Client, AWrongAddressIsNotWaitedForButAServerThatLeftIs) {
  // Five attempts take at least 3.75 s.
  const auto is_tried_again = [](Client& client) {
    const absl::Time begin = absl::Now();
    EXPECT_TRUE(absl::IsUnavailable(client.ListModels().status()));
    return absl::Now() - begin > absl::Seconds(3);
  };
  auto server = std::make_unique<FakeServer>();
  const std::string address = server->address();
  Client client({.server = address});
  EXPECT_TRUE(client.ListModels().ok());
  server.reset();
  EXPECT_TRUE(is_tried_again(client));
  Client other({.server = address});
  EXPECT_FALSE(is_tried_again(other));
}

TEST(Client, AStreamOfTextIsRepeatedBeforeItsFirstMessageOnly) {
  FakeServer server;
  server.status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping");
  Client client({.server = server.address(), .timeout = absl::Seconds(1)});
  int messages = 0;
  const auto count = [&](const v1::GenerateStreamResponse&) { ++messages; };
  EXPECT_FALSE(client.GenerateStream({}, count).ok());
  EXPECT_GT(server.generate_calls, 1);
  server.stream = {Delta("a")};
  server.generate_calls = 0;
  EXPECT_FALSE(client.GenerateStream({}, count).ok());
  EXPECT_EQ(server.generate_calls, 1);
  EXPECT_EQ(messages, 1);
}

TEST(Client, CancelEndsAllCallsThatRun) {
  FakeServer server;
  server.stream_hangs = true;
  Client client({.server = server.address()});
  absl::Status first;
  absl::Status second;
  std::thread first_call([&] { first = client.ClassifyImage({}).status(); });
  std::thread second_call([&] { second = client.ClassifyImage({}).status(); });
  while (server.classify_requests().size() < 2) std::this_thread::yield();
  EXPECT_TRUE(client.Cancel());
  first_call.join();
  second_call.join();
  EXPECT_EQ(first.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(second.code(), absl::StatusCode::kCancelled);
}

// A server that answers as many documents together as the window has.
class ScoreTextsTest : public testing::Test {
 protected:
  static constexpr int kWindow = 4;

  ScoreTextsTest() {
    server_.documents_in_work = kWindow;
    server_.score_document = [](const v1::ScoreTextsRequest& /*request*/) { return v1::ScoreTextsResponse(); };
  }

  FakeServer server_;
  Client client_{{.server = server_.address()}};
};

TEST_F(ScoreTextsTest, EveryDocumentIsAnsweredInOrderAndNoMoreThanTheWindowAreSentAhead) {
  Documents documents(100);
  int answered = 0;
  int max = 0;
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow, [&] { return documents.Next(); },
      [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
        max = std::max(max, documents.read() - answered);
        EXPECT_EQ(name, absl::StrCat(answered));
        EXPECT_EQ(answer.id(), answered++);
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answered, 100);
  // The document that this answer frees may be on its way already.
  EXPECT_LE(max, kWindow + 1);
}

TEST_F(ScoreTextsTest, ADocumentThatIsAnErrorIsAnsweredInItsPlaceAndNotSent) {
  server_.documents_in_work = 1;
  Documents documents(3);
  std::vector<std::string> answers;
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow,
      [&] {
        std::optional<Document> document = documents.Next();
        if (document.has_value() && document->name == "1") document->item = absl::NotFoundError("it is gone");
        return document;
      },
      [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
        answers.push_back(absl::StrCat(name, answer.error().message()));
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answers, std::vector<std::string>({"0", "1it is gone", "2"}));
  EXPECT_EQ(server_.document_requests.size(), 2);
}

TEST_F(ScoreTextsTest, AnswersArriveWhileTheNextDocumentIsAwaited) {
  server_.documents_in_work = 1;
  absl::Notification answered;
  Documents documents(1);
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow,
      [&] {
        std::optional<Document> document = documents.Next();
        if (!document.has_value()) answered.WaitForNotification();
        return document;
      },
      [&](const auto&...) { answered.Notify(); });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ScoreTextsTest, ALostStreamIsRepeatedWhileTheNextDocumentIsAwaited) {
  server_.documents_in_work = 1;
  server_.ends_at_once = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")};
  absl::Notification answered;
  Documents documents(1);
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow,
      [&] {
        std::optional<Document> document = documents.Next();
        if (!document.has_value()) answered.WaitForNotification();
        return document;
      },
      [&](const auto&...) { answered.Notify(); });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ScoreTextsTest, AFailureStopsTheReadingOfDocuments) {
  server_.ends_at_once = {grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no")};
  absl::Notification stopped;
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow,
      [&]() -> std::optional<Document> {
        stopped.WaitForNotification();
        return std::nullopt;
      },
      [](const auto&...) {}, [&] { stopped.Notify(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ScoreTextsTest, CancelEndsTheStream) {
  server_.stream_hangs = true;
  Documents documents(1000);
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow, [&] { return documents.Next(); }, [&](const auto&...) { client_.Cancel(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_F(ScoreTextsTest, AnInternalErrorWithoutTheServersTrailersIsALostConnectionAndRetried) {
  server_.documents_in_work = 1;
  FakeServer::ActAsProxyOfALostServer();
  server_.ends_at_once = {grpc::Status(grpc::StatusCode::INTERNAL, "Received RST_STREAM with error code 2")};
  int answers = 0;
  Documents documents(1);
  const absl::Status status = client_.ScoreTexts(
      {}, 1, [&] { return documents.Next(); }, [&](const auto&...) { ++answers; });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answers, 1);
}

// Each stream answers a window of documents, the last one first, and is lost. That is more losses than one document may
// meet.
TEST_F(ScoreTextsTest, AStreamThatIsLostGoesOnWithTheDocumentsThatWereNotAnswered) {
  constexpr int kDocuments = 10 * kWindow;
  server_.first_ends = {9, grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")};
  server_.score_document = [](const v1::ScoreTextsRequest& request) {
    v1::ScoreTextsResponse answer;
    answer.mutable_model()->set_name(request.input().text());
    return answer;
  };
  Documents documents(kDocuments);
  std::vector<std::string> answers;
  v1::ScoreTextsOptions options;
  options.set_truncate(true);
  const absl::Status status = client_.ScoreTexts(
      options, kWindow, [&] { return documents.Next(); },
      [&](const std::string&, const v1::ScoreTextsResponse& answer) { answers.push_back(answer.model().name()); });
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_EQ(answers.size(), kDocuments);
  for (int place = 0; place < kDocuments; ++place) EXPECT_EQ(answers[place], absl::StrCat(place));
  int beginnings = 0;
  for (const v1::ScoreTextsRequest& request : server_.document_requests) {
    if (!request.has_options()) continue;
    ++beginnings;
    EXPECT_TRUE(request.options().truncate() && request.options().keep_alives());
    EXPECT_EQ(request.options().has_model(), beginnings > 1) << "the first answer pins the model";
  }
  EXPECT_EQ(beginnings, 10);
}

// All answers of a window come, except for the first document's.
TEST_F(ScoreTextsTest, AnswersThatCameEarlyAreNotAskedForAgain) {
  server_.documents_in_work = kWindow - 1;
  server_.loses_first_document = true;
  server_.first_ends = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed")};
  server_.score_document = [&](const v1::ScoreTextsRequest& request) {
    server_.documents_in_work = 1;  // the next call has one document only
    v1::ScoreTextsResponse answer;
    answer.mutable_model()->set_name(request.input().text());
    return answer;
  };
  Documents documents(kWindow);
  int answered = 0;
  const absl::Status status = client_.ScoreTexts(
      {}, kWindow, [&] { return documents.Next(); },
      [&](const std::string&, const v1::ScoreTextsResponse& answer) {
        EXPECT_EQ(answer.model().name(), absl::StrCat(answered++));
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answered, kWindow);
  ASSERT_EQ(server_.document_requests.size(), kWindow + 1);
  EXPECT_EQ(server_.document_requests.back().input().text(), "0");
}

TEST(Client, ALostConnectionIsUnavailableAndTheServersOwnInternalErrorIsNot) {
  FakeServer server;
  Client client({.server = server.address(), .timeout = absl::Milliseconds(200)});  // not enough for another attempt
  server.status = grpc::Status(grpc::StatusCode::INTERNAL, "the model failed");
  EXPECT_EQ(client.Tokenize({}).status(), absl::InternalError("the model failed"));
  FakeServer::ActAsProxyOfALostServer();
  for (const auto code : {grpc::StatusCode::INTERNAL, grpc::StatusCode::CANCELLED, grpc::StatusCode::UNKNOWN}) {
    server.status = grpc::Status(code, "Received RST_STREAM with error code 2");
    EXPECT_EQ(client.CloseSession({}),
              absl::UnavailableError("the connection to the server was lost: Received RST_STREAM with error code 2"));
  }
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

}  // namespace longshort::client::client_test
