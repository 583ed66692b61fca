// What tests with real servers (tests/integration/test_session_drain.py) cannot bring about at will: sessions that go
// on while they are moved, and which of them move first.
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/sessions.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "longshort/v1/sessions.grpc.pb.h"

namespace longshort::client::session_drain_test {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Has sessions of so many tokens by their ids, and calls the hooks with its mutex held.
class Sessions final : public v1::Sessions::Service {
 public:
  Sessions() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    client = std::make_unique<Client>(Client::Options{.server = absl::StrCat("127.0.0.1:", port)});
  }

  std::map<std::string, int64_t> held;
  std::vector<std::string> exported;
  int refused = 0;
  std::vector<std::string> closed;  // "id tokens", and "moved" if it did
  absl::Duration listing_takes = absl::ZeroDuration();
  std::function<void(std::unique_lock<std::mutex>&)> on_export = [](auto&) {};
  std::function<void(const std::string& id)> on_close = [](const auto&) {};
  // Another session is refused for ten seconds as long as one is on its way.
  bool one_at_a_time = false;
  grpc::Status import_status = grpc::Status::OK;
  std::unique_ptr<Client> client;

 private:
  grpc::Status ListSessions(grpc::ServerContext* /*context*/, const v1::ListSessionsRequest* request,
                            v1::ListSessionsResponse* response) override {
    absl::SleepFor(listing_takes);
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(request->all_owners());
    double idle = 0;
    for (const auto& [id, tokens] : held) {  // "a" was used last
      v1::ListedSession& listed = *response->add_sessions();
      listed.set_owner("alice");
      listed.set_session_id(id);
      listed.set_session_tokens(tokens);
      listed.set_idle_seconds(++idle);
    }
    // As a server lists them: in no order that means anything.
    std::reverse(response->mutable_sessions()->begin(), response->mutable_sessions()->end());
    return grpc::Status::OK;
  }

  grpc::Status ExportSession(grpc::ServerContext* context, const v1::ExportSessionRequest* request,
                             grpc::ServerWriter<v1::SessionPart>* writer) override {
    std::unique_lock lock(mutex_);
    EXPECT_EQ(request->owner(), "alice");
    if (one_at_a_time && on_its_way_) {
      context->AddTrailingMetadata("grpc-retry-pushback-ms", "10000");
      ++refused;
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "one is on its way"};
    }
    on_its_way_ = true;
    exported.push_back(request->session_id());
    on_export(lock);
    v1::SessionPart part;
    part.mutable_header()->set_session_tokens(held.at(request->session_id()));
    writer->Write(part);
    part.set_data("data");
    writer->Write(part);
    return grpc::Status::OK;
  }

  grpc::Status ImportSession(grpc::ServerContext* /*context*/, grpc::ServerReader<v1::ImportSessionRequest>* reader,
                             v1::ImportSessionResponse* response) override {
    std::string id;
    for (v1::ImportSessionRequest request; reader->Read(&request);) {
      if (request.has_beginning()) {
        EXPECT_TRUE(request.beginning().keep_owner());
        id = request.beginning().session_id();
      }
      if (request.part().has_header()) response->set_session_tokens(request.part().header().session_tokens());
    }
    if (!import_status.ok()) return import_status;
    if (response->session_tokens() == 0) return {grpc::StatusCode::DATA_LOSS, "cut short"};
    const std::lock_guard lock(mutex_);
    held[id] = response->session_tokens();
    return grpc::Status::OK;
  }

  grpc::Status CloseSession(grpc::ServerContext* /*context*/, const v1::CloseSessionRequest* request,
                            v1::CloseSessionResponse* /*response*/) override {
    const std::lock_guard lock(mutex_);
    const std::string& id = request->session_id();
    EXPECT_EQ(request->owner(), "alice");
    on_close(id);
    if (held.at(id) != request->expected_tokens()) return {grpc::StatusCode::FAILED_PRECONDITION, "it went on"};
    on_its_way_ = false;
    closed.push_back(absl::StrCat(id, " ", held.at(id), request->moved() ? " moved" : ""));
    held.erase(id);
    return grpc::Status::OK;
  }

  std::mutex mutex_;
  bool on_its_way_ = false;
  std::unique_ptr<grpc::Server> server_;
};

class SessionDrainTest : public testing::Test {
 protected:
  absl::StatusOr<DrainResult> Drain(absl::Duration timeout = absl::Seconds(60)) {
    v1::ModelSelector model;
    model.set_name("characters");
    model.set_version(3);
    return DrainSessions(*from_.client, *to_.client,
                         {.model = model, .timeout = timeout, .on_sessions = [](auto) {}, .on_moved = [] {}});
  }

  Sessions from_;
  Sessions to_;
};

// from: 5 tokens ----------------> 6          closed when 6 are there
// to:             5, and closed        6
TEST_F(SessionDrainTest, OneThatGoesOnWhileItIsMovedIsMovedAsItIsThen) {
  from_.held["talk"] = 5;
  bool went_on = false;
  from_.on_close = [&](const std::string&) {
    if (!went_on) from_.held["talk"] = 6;
    went_on = true;
  };
  const absl::StatusOr<DrainResult> result = Drain();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->moved, 1);
  EXPECT_TRUE(result->left.empty());
  EXPECT_THAT(from_.closed, ElementsAre("talk 6 moved"));
  EXPECT_THAT(to_.closed, ElementsAre("talk 5")) << "no call may continue from the outdated copy";
  EXPECT_EQ(to_.held["talk"], 6);
}

TEST_F(SessionDrainTest, OneThatAlwaysGoesOnIsLeftWhenTheTimeIsOver) {
  from_.held["talk"] = 5;
  from_.on_close = [&](const std::string&) { ++from_.held["talk"]; };
  const absl::StatusOr<DrainResult> result = Drain(absl::Milliseconds(300));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->moved, 0);
  ASSERT_EQ(result->left.size(), 1U);
  EXPECT_GE(from_.held["talk"], 5) << "it is where it was";
}

TEST_F(SessionDrainTest, WithoutALastListItIsNotKnownThatNoneIsLeft) {
  from_.held["talk"] = 5;
  from_.on_close = [&](const std::string&) { from_.listing_takes = absl::Seconds(1); };
  const absl::StatusOr<DrainResult> result = Drain(absl::Milliseconds(300));
  EXPECT_FALSE(result.ok());
  EXPECT_THAT(from_.closed, ElementsAre("talk 5 moved"));
}

TEST_F(SessionDrainTest, OneWhoseNextTurnDidNotComeIsLeftForTheReasonOfItsLast) {
  for (const char* id : {"a", "b", "c", "d", "e"}) from_.held[id] = 5;
  from_.on_close = [&](const std::string& id) { ++from_.held[id]; };
  // Time enough that all are worth another try when they are listed again.
  from_.listing_takes = absl::Milliseconds(200);
  const auto over = std::make_shared<absl::Notification>();
  // The second time, four hold all places until the end.
  from_.on_export = [this, over](std::unique_lock<std::mutex>& lock) {
    if (from_.exported.size() <= from_.held.size()) return;
    lock.unlock();
    over->WaitForNotification();
    lock.lock();
  };
  const absl::StatusOr<DrainResult> result = Drain(absl::Seconds(2));
  over->Notify();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->left.size(), 5U);
  for (const DrainResult::Left& left : result->left) {
    EXPECT_EQ(left.why.code(), absl::StatusCode::kAborted) << left.session.session.session_id() << ": " << left.why;
  }
}

TEST_F(SessionDrainTest, RoomThatOthersTookIsTakenWhenTheyAreThrough) {
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) from_.held[id] = 5;
  from_.one_at_a_time = true;
  const absl::StatusOr<DrainResult> result = Drain();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->moved, 7);
  EXPECT_GT(from_.refused, 0);
  EXPECT_LT(result->elapsed, absl::Seconds(10)) << "no move waited for as long as the refusals said";
}

// Not as one that is gone at the first server, which needs no move.
TEST_F(SessionDrainTest, OneWhoseModelTheOtherServerDoesNotHaveIsLeft) {
  from_.held = {{"a", 5}};
  to_.import_status = {grpc::StatusCode::NOT_FOUND, "no model 'characters' version 3"};
  const auto result = Drain(absl::Seconds(10));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->moved, 0);
  ASSERT_EQ(result->left.size(), 1);
  EXPECT_EQ(result->left[0].why.message(), "no model 'characters' version 3");
  EXPECT_THAT(from_.exported, ElementsAre("a"));
}

TEST_F(SessionDrainTest, ThoseThatWereUsedLastMoveFirst) {
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) from_.held[id] = 5;
  std::condition_variable arrived;
  size_t waiting = 0;
  // No export goes on before four have come: those that begin together.
  from_.on_export = [&](std::unique_lock<std::mutex>& lock) {
    ++waiting;
    arrived.notify_all();
    arrived.wait(lock, [&] { return waiting >= 4; });
  };
  const absl::StatusOr<DrainResult> result = Drain();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->moved, 7);
  EXPECT_EQ(result->bytes, 7 * 4);
  ASSERT_EQ(from_.exported.size(), 7U);
  from_.exported.resize(4);
  EXPECT_THAT(from_.exported, UnorderedElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(to_.held.size(), 7U);
}

}  // namespace longshort::client::session_drain_test
