// What becomes of parked pages: of sessions that are closed, end, or go on in another engine, and of paused requests;
// run under the thread sanitizer too.
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/continuous_batching_engine_fixture.h"
#include "tests/core/fakes/gate.h"

namespace longshort::core::session_pages_test {

constexpr absl::Duration kPatience = absl::Seconds(20);

class SessionPagesTest : public ContinuousBatchingEngineFixture {
 protected:
  std::unique_ptr<ContinuousBatchingEngine> MakeEngineOfStore(int workers) {
    ContinuousBatchingEngine::Options options;
    options.workers = models::CpuWorkers(workers);
    options.step_loop.max_streams = 60;  // so that whichever worker has all the sessions has room for their pages
    options.session_store = store_;
    return MakeEngine(options);
  }

  // That many calls, each of a session, all at once and to their ends.
  static std::vector<std::shared_ptr<RecordingGenerationListener>> SayAtOnce(LanguageModelEngine& engine, int talks) {
    std::vector<std::shared_ptr<RecordingGenerationListener>> listeners(talks);
    for (int talk = 0; talk < talks; ++talk) listeners[talk] = Begin(engine, talk, SomeTokens(20, talk));
    for (const auto& listener : listeners) EXPECT_TRUE(listener->end.Wait());
    return listeners;
  }

  // Whether the engine comes to have so many.
  bool ComesToPark(const LanguageModelEngine& engine, int64_t sequences) const {
    const absl::Time deadline = clock_.Now() + kPatience;
    while (engine.state().cache.parked_sequences != sequences) {
      if (clock_.Now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::shared_ptr<SessionStore> store_ = std::make_shared<SessionStore>(clock_, SessionStore::Options());
};

TEST_F(SessionPagesTest, AClosedSessionsPagesAreFree) {
  const auto engine = MakeEngine({.workers = models::CpuWorkers(2)});
  Say(*engine, 0, SomeTokens(30));
  EXPECT_TRUE(ComesToPark(*engine, 1));
  EXPECT_GT(engine->state().cache_bytes_idle, 0);
  ASSERT_TRUE(engine->sessions().Close(Key(0), {}).ok());
  EXPECT_TRUE(ComesToPark(*engine, 0));
  EXPECT_EQ(engine->state().cache_bytes_idle, 0) << "30 tokens are no block, so that no prefix has them";
}

TEST_F(SessionPagesTest, ClosedSessionsDoNotPushOutThoseThatLive) {
  const auto engine = MakeEngine({.step_loop = {.max_streams = 8}});
  for (int talk = 0; talk < 3; ++talk) Say(*engine, talk, SomeTokens(30, talk));
  for (int talk = 3; talk < 40; ++talk) {
    Say(*engine, talk, SomeTokens(30, talk));
    ASSERT_TRUE(engine->sessions().Close(Key(talk), {}).ok());
  }
  for (int talk = 0; talk < 3; ++talk) EXPECT_EQ(Say(*engine, talk, SomeTokens(5))->summary.reused_tokens, 39);
  EXPECT_EQ(engine->state().cache.counters.evicted_parked, 0);
}

TEST_F(SessionPagesTest, SessionsGoOnInTheEngineThatTakesThePlaceOfAnotherAndTheirPagesThereAreFree) {
  const auto before = MakeEngineOfStore(/*workers=*/3), after = MakeEngineOfStore(/*workers=*/1);
  // Each worker of the first has some of them.
  constexpr int kTalks = 9;
  const auto listeners = SayAtOnce(*before, kTalks);
  EXPECT_TRUE(ComesToPark(*before, kTalks));
  const StepLoopHarness reference;
  for (int talk = 0; talk < kTalks; ++talk) {
    GenerationRequest alone;
    alone.prompt = SomeTokens(20, talk);
    const std::vector<int32_t> more = SomeTokens(7, 100 + talk);
    alone.prompt.insert(alone.prompt.end(), listeners[talk]->tokens.begin(), listeners[talk]->tokens.end());
    alone.prompt.insert(alone.prompt.end(), more.begin(), more.end());
    alone.max_tokens = 10;
    const auto said = Say(*after, talk, more);
    EXPECT_EQ(said->tokens, reference.TokensAlone(alone));
    EXPECT_EQ(said->summary.session_tokens, 20 + 10 + 7 + 10);
    EXPECT_EQ(said->summary.reused_tokens, 0);
  }
  EXPECT_TRUE(ComesToPark(*before, 0));
  EXPECT_TRUE(ComesToPark(*after, kTalks));
}

TEST_F(SessionPagesTest, ACallInOneEngineKeepsTheSessionFromTheOther) {
  Gate gate;
  std::atomic<bool> hold = true;
  on_step = [&](absl::Span<const models::Slice>) {
    if (hold) gate.Pass();
    return absl::OkStatus();
  };
  const auto before = MakeEngineOfStore(1), after = MakeEngineOfStore(1);
  const auto running = Begin(*before, 0, SomeTokens(20));
  gate.WaitForArrival();
  GenerationRequest request;
  request.prompt = SomeTokens(5);
  request.session = SessionReference{.id = Key(0).id};
  EXPECT_TRUE(absl::IsAborted(after->Generate(request, std::make_shared<RecordingGenerationListener>())));
  EXPECT_TRUE(absl::IsAborted(after->sessions().Close(Key(0), {})));
  hold = false;
  gate.Open();
  ASSERT_TRUE(running->end.Wait());
  EXPECT_EQ(Say(*after, 0, SomeTokens(5))->summary.session_tokens, 20 + 10 + 5 + 10);
}

TEST_F(SessionPagesTest, WhatIsParkedInAnotherEngineIsNeitherExportedNorLeftThereWhenItIsClosed) {
  const auto before = MakeEngineOfStore(3), after = MakeEngineOfStore(1);
  SayAtOnce(*before, 6);
  for (int talk = 0; talk < 6; ++talk) {
    EndSignal end;
    after->ExportSession(Key(talk), [&](const absl::StatusOr<SessionArchive>& archive) {
      EXPECT_TRUE(archive.ok()) << archive.status();
      if (archive.ok()) {
        EXPECT_EQ(archive->tokens.size(), 30U);
        EXPECT_FALSE(archive->cached.has_value());
      }
      end.Notify();
    });
    ASSERT_TRUE(end.Wait());
    EXPECT_TRUE(after->sessions().Close(Key(talk), {}).ok());
  }
  EXPECT_TRUE(ComesToPark(*before, 0));
}

TEST_F(SessionPagesTest, SessionsOutliveTheEngineThatHadThem) {
  auto before = MakeEngineOfStore(2);
  const auto after = MakeEngineOfStore(2);
  Say(*before, 0, SomeTokens(20));
  Say(*before, 1, SomeTokens(20, 1));
  before.reset();
  EXPECT_TRUE(after->sessions().Close(Key(1), {}).ok());
  EXPECT_EQ(Say(*after, 0, SomeTokens(5))->summary.session_tokens, 45);
}

TEST_F(SessionPagesTest, ASessionThatExpiresReleasesItsPagesWithoutACall) {
  ContinuousBatchingEngine::Options options;
  options.sessions.time_to_live = absl::Milliseconds(200);
  const auto engine = MakeEngine(options);
  Say(*engine, 0, SomeTokens(30));  // which hears its end when its pages are parked
  EXPECT_TRUE(ComesToPark(*engine, 0));
  EXPECT_TRUE(absl::IsNotFound(engine->sessions().Close(Key(0), {})));
}

// One engine ends while calls of another take over its sessions, and while they are closed.
TEST_F(SessionPagesTest, AnEngineMayEndWhileItsPagesAreReleased) {
  const auto after = MakeEngineOfStore(1);
  for (int round = 0; round < 20; ++round) {
    auto before = MakeEngineOfStore(2);
    for (int talk = 0; talk < 4; ++talk) Say(*before, talk, SomeTokens(20));
    std::thread other([&] {
      for (int talk = 0; talk < 4; ++talk) {
        if (talk % 2 == 0) Say(*after, talk, SomeTokens(3));
        EXPECT_TRUE(after->sessions().Close(Key(talk), {}).ok());
      }
    });
    before.reset();
    other.join();
  }
  EXPECT_TRUE(ComesToPark(*after, 0));
}

}  // namespace longshort::core::session_pages_test
