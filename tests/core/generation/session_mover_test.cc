// Sessions that go from one engine to another; run under the thread sanitizer too.
#include "core/generation/session_mover.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/continuous_batching_engine_fixture.h"
#include "tests/core/fakes/gate.h"

namespace longshort::core::session_mover_test {

using testing::HasSubstr;

// All tests are about one session.
constexpr int kTalk = 0;

class SessionMoverTest : public ContinuousBatchingEngineFixture {
 protected:
  static absl::StatusOr<SessionArchive> Export(LanguageModelEngine& engine) {
    absl::StatusOr<SessionArchive> exported = absl::UnknownError("not heard yet");
    EndSignal end;
    engine.ExportSession(Key(kTalk), [&](absl::StatusOr<SessionArchive> archive) {
      exported = std::move(archive);
      end.Notify();
    });
    EXPECT_TRUE(end.Wait());
    return exported;
  }

  static absl::Status Import(LanguageModelEngine& engine, SessionArchive archive) {
    absl::Status imported = absl::UnknownError("not heard yet");
    EndSignal end;
    engine.ImportSession(Key(kTalk), std::move(archive), [&](absl::Status status) {
      imported = std::move(status);
      end.Notify();
    });
    EXPECT_TRUE(end.Wait());
    return imported;
  }
};

TEST_F(SessionMoverTest, ASessionGoesOnInAnotherEngineAsInItsOwn) {
  for (const int64_t prompt : {1, 3, 50, 64, 300, 1000}) {
    const auto here = MakeEngine({.workers = models::CpuWorkers(2)}),
               there = MakeEngine({.workers = models::CpuWorkers(3)});
    Say(*there, kTalk, SomeTokens(40, 9));
    ASSERT_TRUE(there->sessions().Close(Key(kTalk), {}).ok());
    Say(*here, kTalk, SomeTokens(prompt));
    const absl::StatusOr<SessionArchive> archive = Export(*here);
    ASSERT_TRUE(archive.ok()) << archive.status();
    EXPECT_EQ(static_cast<int64_t>(archive->tokens.size()), prompt + 10);
    ASSERT_TRUE(archive->cached.has_value());
    EXPECT_EQ(archive->cached->position, prompt + 9) << "all but the token that was sampled last";
    const absl::Status imported = Import(*there, *archive);
    ASSERT_TRUE(imported.ok()) << imported;
    for (int turn = 0; turn < 3; ++turn) {
      const auto stayed = Say(*here, kTalk, SomeTokens(30, 4 + turn), 100),
                 moved = Say(*there, kTalk, SomeTokens(30, 4 + turn), 100);
      EXPECT_EQ(moved->tokens, stayed->tokens);
      EXPECT_EQ(moved->summary.reused_tokens, stayed->summary.reused_tokens);
      EXPECT_EQ(moved->summary.session_tokens, stayed->summary.session_tokens);
    }
    EXPECT_EQ(there->state().cache.counters.imported, 1);
  }
}

// here:  200 tokens ---------> 39 more --> 30 more
// there: the 200 ---> (again)  those   --> the same 30
TEST_F(SessionMoverTest, ASessionThatIsThereGoesOnToTheOneThatComes) {
  const auto here = MakeEngine(), there = MakeEngine({.workers = models::CpuWorkers(2)});
  Say(*here, kTalk, SomeTokens(190));
  const SessionArchive early = *Export(*here);
  ASSERT_TRUE(Import(*there, early).ok());
  EXPECT_TRUE(HoldsAllOf(Import(*there, early)));
  Say(*here, kTalk, SomeTokens(29, 2));
  const SessionArchive late = *Export(*here);
  ASSERT_TRUE(Import(*there, late).ok());
  EXPECT_TRUE(HoldsAllOf(Import(*there, early))) << "it does not go back";
  const auto stayed = Say(*here, kTalk, SomeTokens(30, 4)), moved = Say(*there, kTalk, SomeTokens(30, 4));
  EXPECT_EQ(moved->tokens, stayed->tokens);
  EXPECT_EQ(moved->summary.reused_tokens, 200 + 39 - 1);
  EXPECT_EQ(there->state().cache.counters.imported, 2) << "nothing was taken in of what was there already";
}

TEST_F(SessionMoverTest, ASessionWhosePagesAreGoneMovesAsTokens) {
  // Room for one stream of any length.
  ContinuousBatchingEngine::Options small;
  small.step_loop = {.max_streams = 1, .steps = {.max_rows = 100}};
  const auto here = MakeEngine(small), there = MakeEngine();
  Say(*here, kTalk, SomeTokens(200));
  const auto other = std::make_shared<RecordingScoringListener>();
  ASSERT_TRUE(here->Score(SomeScoring(900, 3), other).ok());
  ASSERT_TRUE(other->end.Wait());
  const absl::StatusOr<SessionArchive> archive = Export(*here);
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_FALSE(archive->cached.has_value());
  ASSERT_TRUE(Import(*there, *archive).ok());
  EXPECT_EQ(Say(*there, kTalk, SomeTokens(9, 1))->tokens, Say(*here, kTalk, SomeTokens(9, 1))->tokens);
}

TEST_F(SessionMoverTest, PagesOfAnotherLayoutOrForWhichThereIsNoRoomAreReadAgain) {
  const auto here = MakeEngine(), there = MakeEngine(), tiny = MakeEngine({.step_loop = {.cache_bytes = 4000}});
  Say(*here, kTalk, SomeTokens(200));
  SessionArchive archive = *Export(*here);
  ASSERT_TRUE(archive.cached.has_value());
  const absl::Status status = Import(*tiny, archive);
  EXPECT_TRUE(status.ok()) << status;
  archive.cache_layout = "another";
  archive.cached->contents = "in a format that is unknown here";
  ASSERT_TRUE(Import(*there, archive).ok());
  EXPECT_EQ(Say(*there, kTalk, SomeTokens(9, 1))->tokens, Say(*here, kTalk, SomeTokens(9, 1))->tokens);
}

TEST_F(SessionMoverTest, WhatCannotBeASessionOfTheModelIsRefused) {
  const auto here = MakeEngine(), there = MakeEngine();
  Say(*here, kTalk, SomeTokens(200));
  const SessionArchive right = *Export(*here);
  const auto refused = [&](const std::function<void(SessionArchive&)>& spoil) {
    SessionArchive archive = right;
    spoil(archive);
    const absl::Status status = Import(*there, std::move(archive));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refused([](SessionArchive& archive) { archive.tokens.clear(); }), "the session has no tokens");
  EXPECT_EQ(refused([](SessionArchive& archive) { archive.tokens[7] = 16; }),
            "token 7 of the session is 16; the model has 16 tokens");
  EXPECT_THAT(refused([](SessionArchive& archive) { archive.tokens[0] = -1; }), HasSubstr("token 0 of the session"));
  EXPECT_THAT(refused([](SessionArchive& archive) { archive.tokens.resize(100); }), HasSubstr("has read 209"));
  EXPECT_THAT(refused([](SessionArchive& archive) { archive.cached->contents.pop_back(); }), HasSubstr("must have"));
  EXPECT_TRUE(absl::IsNotFound(Export(*there).status()));
  ASSERT_TRUE(Import(*there, right).ok());
  EXPECT_EQ(Import(*there, right).code(), absl::StatusCode::kAlreadyExists);
  Say(*there, kTalk, SomeTokens(30));
  EXPECT_EQ(there->state().cache.counters.imported, 1) << "no page of what was refused";
}

TEST_F(SessionMoverTest, ASessionIsExclusiveWhileItsPagesAreRead) {
  Gate gate;
  std::atomic<bool> hold = false;
  on_step = [&](absl::Span<const models::Slice>) {
    if (hold) gate.Pass();
    return absl::OkStatus();
  };
  const auto engine = MakeEngine();
  Say(*engine, kTalk, SomeTokens(20));
  hold = true;
  const auto other = std::make_shared<RecordingScoringListener>();
  ASSERT_TRUE(engine->Score(SomeScoring(30), other).ok());
  gate.WaitForArrival();
  absl::StatusOr<SessionArchive> exported = absl::UnknownError("not heard yet");
  EndSignal end;
  engine->ExportSession(Key(kTalk), [&](absl::StatusOr<SessionArchive> archive) {
    exported = std::move(archive);
    end.Notify();
  });
  EXPECT_TRUE(absl::IsAborted(engine->sessions().Close(Key(kTalk), {})));
  EXPECT_TRUE(absl::IsAborted(Export(*engine).status()));
  gate.Open();
  ASSERT_TRUE(end.Wait());
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_TRUE(exported->cached.has_value());
  EXPECT_TRUE(engine->sessions().Close(Key(kTalk), {}).ok());
}

TEST_F(SessionMoverTest, AnEngineThatIsDrainedTakesNoneAndStillGivesTokens) {
  const auto engine = MakeEngine();
  Say(*engine, kTalk, SomeTokens(20));
  const SessionArchive archive = *Export(*engine);
  engine->Drain(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsUnavailable(Import(*engine, archive)));
  const absl::StatusOr<SessionArchive> late = Export(*engine);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->tokens, archive.tokens);
  EXPECT_FALSE(late->cached.has_value());
}

TEST_F(SessionMoverTest, MovesWhileOthersRun) {
  const auto here = MakeEngine({.workers = models::CpuWorkers(2)}),
             there = MakeEngine({.workers = models::CpuWorkers(2)});
  std::atomic<bool> stop = false;
  std::thread others([&] {
    for (uint32_t seed = 0; !stop; ++seed) {
      const auto first = std::make_shared<RecordingScoringListener>(),
                 second = std::make_shared<RecordingScoringListener>();
      EXPECT_TRUE(here->Score(SomeScoring(100 + seed % 50, seed), first).ok());
      EXPECT_TRUE(there->Score(SomeScoring(100 + seed % 50, seed), second).ok());
      EXPECT_TRUE(first->end.Wait() && second->end.Wait());
    }
  });
  LanguageModelEngine *from = here.get(), *to = there.get();
  std::vector<int32_t> talk;
  const StepLoopHarness reference;
  for (uint32_t turn = 0; turn < 20; ++turn) {
    GenerationRequest alone;
    const std::vector<int32_t> prompt = SomeTokens(17, turn);
    talk.insert(talk.end(), prompt.begin(), prompt.end());
    alone.prompt = talk;
    alone.max_tokens = 10;
    const auto said = Say(*from, kTalk, prompt);
    EXPECT_EQ(said->tokens, reference.TokensAlone(alone));
    talk.insert(talk.end(), said->tokens.begin(), said->tokens.end());
    absl::StatusOr<SessionArchive> archive = Export(*from);
    ASSERT_TRUE(archive.ok()) << archive.status();
    ASSERT_TRUE(Import(*to, *std::move(archive)).ok());
    ASSERT_TRUE(from->sessions().Close(Key(kTalk), {}).ok());
    std::swap(from, to);
  }
  stop = true;
  others.join();
}

}  // namespace longshort::core::session_mover_test
