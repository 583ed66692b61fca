// A job of a session: whose memory its history is.
#include <algorithm>
#include <vector>

#include "core/requests/language_model_jobs.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/live_heap.h"
#include "tests/core/fakes/recording_listeners.h"

namespace longshort::core::session_history_test {

constexpr int64_t kTokens = int64_t{1} << 20;

class SessionHistoryTest : public testing::Test {
 protected:
  // A session of kTokens, of which all but 10 are of a call that ended early.
  SessionHistoryTest() {
    SessionStore::Lease lease = *store_.Open({.client = "", .id = "talk"}, false);
    lease.Commit({.tokens = std::vector<int32_t>(kTokens, 7), .partial_from = 10});
  }
  absl::StatusOr<std::unique_ptr<Job>> Continue(const std::optional<int64_t>& expected = std::nullopt) {
    GenerationRequest request;
    request.prompt = {1, 2};
    request.max_tokens = 5;
    request.session = SessionReference{.id = "talk", .expected_tokens = expected};
    return MakeJob(std::move(request), std::make_shared<RecordingGenerationListener>(), vocabulary_, observer_, store_);
  }

  FakeClock clock_;
  SessionStore store_{clock_, {}};
  const Vocabulary vocabulary_ = *Vocabulary::Make(10, nullptr);
  RecordingObserver observer_;
};

TEST_F(SessionHistoryTest, IsTheSessionsUntilAWorkerLooksAtIt) {
  const int64_t before = LiveHeapBytes();
  const auto job = Continue();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_LT(LiveHeapBytes() - before, 64 << 10) << "a thread that reads calls would copy 4 MiB";
  const int64_t held = (*job)->HeldTokens();
  EXPECT_GE(held, kTokens + 2) << "what the worker is going to hold counts already";

  const std::vector<int32_t>& all = (*job)->stream().all();
  EXPECT_EQ(static_cast<int64_t>(all.capacity()), (*job)->stream().capacity());
  EXPECT_EQ((*job)->HeldTokens(), held);
  EXPECT_EQ(static_cast<int64_t>(all.size()), kTokens + 2);
  EXPECT_EQ(std::count(all.begin(), all.end(), 7), kTokens);
  EXPECT_EQ(all.back(), 2);
  EXPECT_EQ((*job)->Unread(), (std::vector<int32_t>{7, 1, 2}));
}

TEST_F(SessionHistoryTest, IsTheSessionsAlsoIfTheClientHasReceivedLess) {
  const int64_t before = LiveHeapBytes();
  const auto job = Continue(kTokens - 1);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_LT(LiveHeapBytes() - before, 64 << 10);
  EXPECT_EQ((*job)->stream().end(), kTokens + 1);
  EXPECT_EQ((*job)->stream()[kTokens - 1], 1);
}

}  // namespace longshort::core::session_history_test
