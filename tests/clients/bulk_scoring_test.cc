// ScoreInBulk: many documents, servers that fail, and several of them.
#include "clients/cpp/bulk_scoring.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/fake_server.h"

namespace longshort {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

absl::Status TakeAll(DocumentInputs& /*inputs*/) { return absl::OkStatus(); }

// The documents "0", "1", ...; counts those that were asked for.
class Numbers final : public DocumentSource {
 public:
  explicit Numbers(int64_t count) : count_(count) {}
  int64_t total() const override { return 0; }
  std::optional<NamedDocument> Next() override {
    if (asked_for_ == count_) return std::nullopt;
    const std::string name = absl::StrCat(asked_for_++);
    return NamedDocument{name, MakeInputs(name, std::nullopt, false)};
  }
  std::optional<PassedDocument> Pass() override { return std::nullopt; }
  int64_t asked_for() const { return asked_for_; }

 private:
  const int64_t count_;
  std::atomic<int64_t> asked_for_ = 0;
};

v1::ScoreTextsResponse Score(const std::string& label) {
  v1::ScoreTextsResponse answer;
  answer.mutable_classification()->mutable_classification()->add_classes()->set_label(label);
  return answer;
}

// Two servers of one model, which answer a document with itself.
class BulkScoringTest : public testing::Test {
 protected:
  BulkScoringTest() {
    for (FakeServer* server : {&first_, &second_}) {
      v1::Model model;
      model.set_name("echo");
      model.set_fingerprint("f1");
      model.mutable_limits()->set_window(8);
      server->models = {model};
      server->score_document = [](const v1::ScoreTextsRequest& request) { return Score(request.input().raw()); };
    }
  }

  static ServerClient ClientOf(const FakeServer& server, absl::Duration timeout = absl::InfiniteDuration()) {
    return {server.address(),
            std::make_shared<Client>(Client::Options{.server = server.address(), .timeout = timeout})};
  }

  // Keeps the news, and the names of documents whose answers are their own.
  absl::Status Run(const std::vector<ServerClient>& servers, const BulkOptions& options, DocumentSource& source) {
    const auto on_scored = [this](const std::string& name, const v1::ScoreTextsResponse& answer) {
      handed_on_.push_back(name);
      EXPECT_TRUE(answer.has_error() || answer.classification().classification().classes(0).label() == name);
      return static_cast<int64_t>(handed_on_.size()) < most_;
    };
    const auto on_news = [this](const std::string& news) {
      news_.push_back(news);
      if (waits_for_news_ != nullptr) std::exchange(waits_for_news_, nullptr)->first_document_may_go.Notify();
    };
    return ScoreInBulk(servers, first_.models.front(), options, source, TakeAll, {on_scored, on_news}).status;
  }

  void ExpectAllInOrder(int64_t count) {
    ASSERT_THAT(handed_on_, SizeIs(count));
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(handed_on_[i], absl::StrCat(i));
  }

  const grpc::Status stopping_{grpc::StatusCode::UNAVAILABLE, "the server is stopping"};
  FakeServer first_;
  FakeServer second_;
  // Makes a server work on one document until there are news: the other one has its turn, however fast this one is.
  void WaitForNews(FakeServer& server) {
    server.models.front().mutable_limits()->set_window(1);
    server.keeps_first_document = true;
    waits_for_news_ = &server;
  }

  FakeServer* waits_for_news_ = nullptr;
  int64_t most_ = 1'000'000;  // then no more answers are wanted
  std::vector<std::string> handed_on_;
  std::vector<std::string> news_;
};

// Documents that cannot be sent, of which the next is only read once the one before was handed on.
class UnsendableDocuments final : public DocumentSource {
 public:
  explicit UnsendableDocuments(const std::vector<std::string>& handed_on) : handed_on_(handed_on) {}
  int64_t total() const override { return 0; }
  std::optional<NamedDocument> Next() override {
    EXPECT_EQ(static_cast<int>(handed_on_.size()), read_);
    if (++read_ > 3) return std::nullopt;
    return NamedDocument{absl::StrCat(read_), absl::NotFoundError("it cannot be read")};
  }
  std::optional<PassedDocument> Pass() override { return std::nullopt; }

 private:
  const std::vector<std::string>& handed_on_;
  int read_ = 0;
};

TEST_F(BulkScoringTest, WhatCannotBeSentIsToldAtOnce) {
  UnsendableDocuments source(handed_on_);
  const absl::Status status = Run({ClientOf(first_)}, {}, source);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(handed_on_, ElementsAre("1", "2", "3"));
}

TEST_F(BulkScoringTest, AnswersThatWaitForTheFirstTakeALimitedPlace) {
  constexpr int64_t kDocuments = 2000;
  constexpr size_t kPlace = size_t{256} << 10;
  constexpr size_t kAnswer = size_t{1} << 10;
  first_.keeps_first_document = true;
  first_.score_document = [](const v1::ScoreTextsRequest& request) {
    v1::ScoreTextsResponse answer = Score(request.input().raw());
    answer.mutable_classification()->mutable_classification()->add_classes()->set_label(std::string(kAnswer, 'x'));
    return answer;
  };
  Numbers source(kDocuments);
  std::thread scoring([&] {
    const absl::Status status = Run({ClientOf(first_)}, {.limits = {.held_bytes = kPlace}}, source);
    EXPECT_TRUE(status.ok()) << status;
  });
  int64_t before = 0;
  while (source.asked_for() < 100 || std::exchange(before, source.asked_for()) != source.asked_for()) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  // Besides, 8 are in work and 16 were read ahead.
  EXPECT_LT(source.asked_for(), kPlace / kAnswer + 32);
  EXPECT_THAT(handed_on_, IsEmpty());
  first_.first_document_may_go.Notify();
  scoring.join();
  ExpectAllInOrder(kDocuments);
}

// Nor is there a wait for room that nobody makes any more.
TEST_F(BulkScoringTest, AStreamThatEndsWhileAnswersWaitIsAnError) {
  first_.keeps_first_document = true;
  Numbers source(1'000'000);
  const absl::Status status = Run({ClientOf(first_, absl::Seconds(1))}, {.limits = {.held_bytes = 1}}, source);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(source.asked_for(), 100);
  first_.first_document_may_go.Notify();
}

TEST_F(BulkScoringTest, WithRetryABrokenStreamIsTakenUpWhereItWas) {
  first_.documents_in_work = 3;
  first_.first_ends = {stopping_, stopping_};
  Numbers source(20);
  const absl::Status status = Run({ClientOf(first_)}, {.retry = true}, source);
  EXPECT_TRUE(status.ok()) << status;
  ExpectAllInOrder(20);
  EXPECT_THAT(first_.first_ends, IsEmpty());
  ASSERT_THAT(news_, SizeIs(4));
  EXPECT_THAT(news_[0], HasSubstr("is waited for: UNAVAILABLE: the server is stopping"));
  EXPECT_THAT(news_[1], HasSubstr("is back"));
}

// By itself the client would be back after half a second.
TEST_F(BulkScoringTest, NoServerIsAskedSoonerThanItSays) {
  first_.first_ends = {stopping_};
  first_.pushback = "700";
  Numbers source(2);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(Run({ClientOf(first_)}, {.retry = true}, source).ok());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(700));
  ExpectAllInOrder(2);
}

TEST_F(BulkScoringTest, WithoutRetryABrokenStreamIsTheEnd) {
  first_.first_ends = {stopping_};
  Numbers source(20);
  EXPECT_EQ(Run({ClientOf(first_)}, {}, source).message(), "the server is stopping");
  ExpectAllInOrder(1);
}

TEST_F(BulkScoringTest, WhatWillBeRefusedAgainIsTheEndEvenWithRetry) {
  first_.first_ends = {{grpc::StatusCode::INVALID_ARGUMENT, "no such options"}};
  Numbers source(20);
  EXPECT_EQ(Run({ClientOf(first_)}, {.retry = true}, source).message(), "no such options");
}

TEST_F(BulkScoringTest, WithRetryADocumentThatAFullServerRefusedIsAskedAgain) {
  std::vector<int> refusals(20, 2);
  first_.score_document = [&](const v1::ScoreTextsRequest& request) {
    if (request.id() != 7 || refusals[request.id()]-- == 0) return Score(request.input().raw());
    v1::ScoreTextsResponse answer;
    answer.mutable_error()->set_code(8);
    answer.mutable_error()->set_message("the server is full");
    answer.mutable_error()->set_retry_after_seconds(0.01);
    return answer;
  };
  Numbers source(20);
  const absl::Status status = Run({ClientOf(first_)}, {.retry = true}, source);
  EXPECT_TRUE(status.ok()) << status;
  ExpectAllInOrder(20);
  EXPECT_THAT(first_.document_requests, SizeIs(22));
}

TEST_F(BulkScoringTest, WhatAServerThatGoesAwayLeavesIsGivenToTheOthers) {
  WaitForNews(second_);
  first_.first_ends = {stopping_};
  Numbers source(200);
  const absl::Status status = Run({ClientOf(first_), ClientOf(second_)}, {}, source);
  EXPECT_TRUE(status.ok()) << status;
  ExpectAllInOrder(200);
  ASSERT_THAT(news_, SizeIs(1));
  EXPECT_EQ(news_[0], absl::StrCat(first_.address(), " is left: UNAVAILABLE: the server is stopping"));
}

TEST_F(BulkScoringTest, EachServerWorksAtItsOwnPace) {
  // The first one works on one document, until the second one has answered 100.
  first_.models.front().mutable_limits()->set_window(1);
  first_.keeps_first_document = true;
  second_.score_document = [&, answered = 0](const v1::ScoreTextsRequest& request) mutable {
    if (++answered == 100) first_.first_document_may_go.Notify();
    return Score(request.input().raw());
  };
  Numbers source(300);
  const absl::Status status = Run({ClientOf(first_), ClientOf(second_)}, {}, source);
  EXPECT_TRUE(status.ok()) << status;
  ExpectAllInOrder(300);
}

TEST_F(BulkScoringTest, OnceTheLastServerIsLeftItIsTheEnd) {
  first_.first_ends = {stopping_};
  second_.first_ends = {stopping_};
  Numbers source(200);
  EXPECT_EQ(Run({ClientOf(first_), ClientOf(second_)}, {}, source).message(), "the server is stopping");
  EXPECT_LE(handed_on_.size(), 2);
}

TEST_F(BulkScoringTest, AServerWithOtherWeightsIsLeft) {
  WaitForNews(first_);
  second_.models.front().set_fingerprint("f2");
  Numbers source(20);
  const absl::Status status = Run({ClientOf(first_), ClientOf(second_)}, {.retry = true}, source);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(second_.document_requests, IsEmpty());
  EXPECT_THAT(news_, ElementsAre(HasSubstr("has the fingerprint f2; the run began with f1")));
}

TEST_F(BulkScoringTest, CancelEndsTheWaitForAServer) {
  const ServerClient gone = {"127.0.0.1:1", std::make_shared<Client>(Client::Options{.server = "127.0.0.1:1"})};
  Numbers source(20);
  absl::Status status;
  std::thread scoring([&] { status = Run({gone}, {.retry = true}, source); });
  while (!gone.client->Cancel()) std::this_thread::yield();
  scoring.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_F(BulkScoringTest, OnceNobodyWantsTheAnswersItIsTheEnd) {
  most_ = 10;
  Numbers source(1'000'000);
  EXPECT_FALSE(Run({ClientOf(first_), ClientOf(second_)}, {.retry = true}, source).ok());
  ExpectAllInOrder(10);
}

TEST_F(BulkScoringTest, WithRetryTheModelIsAskedForUntilAServerIsThere) {
  const v1::Model model = first_.models.front();
  const ServerClient gone = {"127.0.0.1:1", std::make_shared<Client>(Client::Options{.server = "127.0.0.1:1"})};
  const auto on_news = [this](const std::string& news) { news_.push_back(news); };
  EXPECT_TRUE(absl::IsUnavailable(DescribeModel({gone}, {}, false, on_news).status()));
  EXPECT_THAT(news_, IsEmpty());
  const absl::StatusOr<v1::Model> found = DescribeModel({gone, ClientOf(first_)}, {}, true, on_news);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->fingerprint(), "f1");
  EXPECT_THAT(news_, ElementsAre(HasSubstr("127.0.0.1:1 is waited for: UNAVAILABLE")));
}

}  // namespace
}  // namespace longshort
