// One client that asks for far more than its share: what another client's calls wait then, in simulated time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::crowding_test {

constexpr int64_t kStreams = 16;
constexpr absl::Duration kStep = absl::Milliseconds(20);

using Listener = std::shared_ptr<RecordingGenerationListener>;

GenerationRequest Request(const std::string& client, int64_t max_tokens, Priority priority = Priority::kNormal) {
  static uint32_t seed = 0;
  GenerationRequest request = SomeGeneration(4, max_tokens, ++seed);
  request.context.client = client;
  request.context.priority = priority;
  return request;
}

class Crowding : public testing::Test {
 protected:
  explicit Crowding(int64_t cache_bytes = 0)
      : harness_({.max_streams = kStreams, .cache_bytes = cache_bytes},
                 {.limits = {.max_queued = 1024, .max_queued_cost = absl::Minutes(1)}}) {
    harness_.model.on_step = [this](absl::Span<const models::Slice>) {
      harness_.clock.Advance(kStep);
      return absl::OkStatus();
    };
  }

  // How many of `count` requests are admitted.
  int64_t Ask(int64_t count, const std::string& client, int64_t max_tokens, Priority priority = Priority::kNormal) {
    int64_t admitted = 0;
    for (int64_t i = 0; i < count; ++i) {
      listeners_.push_back(std::make_shared<RecordingGenerationListener>());
      last_ = harness_.Submit(Request(client, max_tokens, priority), listeners_.back());
      if (last_.ok()) ++admitted;
    }
    return admitted;
  }

  // How long a call takes until its end.
  absl::Duration TimeOf(const std::string& client, int64_t max_tokens, Priority priority = Priority::kNormal) {
    const absl::Time begin = harness_.clock.Now();
    if (Ask(1, client, max_tokens, priority) == 0) return absl::InfiniteDuration();
    const Listener listener = listeners_.back();
    while (!listener->end.ended() && harness_.clock.Now() < begin + absl::Minutes(20)) harness_.RunOnce();
    EXPECT_TRUE(listener->status.ok()) << listener->status;
    return harness_.clock.Now() - begin;
  }

  void RunFor(absl::Duration time) {
    const absl::Time end = harness_.clock.Now() + time;
    while (harness_.clock.Now() < end) {
      if (!harness_.RunOnce()) harness_.clock.Advance(kStep);
      ASSERT_TRUE(harness_.loop->CheckInvariants().ok()) << harness_.loop->CheckInvariants();
    }
  }

  int64_t Streams() const { return harness_.loop->state().active_streams; }

  StepLoopHarness harness_;
  std::vector<Listener> listeners_;
  absl::Status last_;
};

class CrowdingAtEachPriority : public Crowding, public testing::WithParamInterface<Priority> {};

INSTANTIATE_TEST_SUITE_P(Priorities, CrowdingAtEachPriority,
                         testing::Values(Priority::kLow, Priority::kNormal, Priority::kHigh));

// The report: 30 streams of 6000 tokens take minutes, and 5 tokens take 5 steps.
TEST_P(CrowdingAtEachPriority, AnotherClientIsServedInAFewSteps) {
  Ask(30, "greedy", 6000);
  RunFor(absl::Seconds(3));
  for (int i = 0; i < 15; ++i) {
    EXPECT_LE(TimeOf("other", 5, GetParam()), 10 * kStep) << last_;
    RunFor(absl::Seconds(1));
  }
  EXPECT_EQ(Streams(), kStreams - 1) << "one stream is kept for the client that asks again and again";
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Streams(), kStreams) << "and is used once it no longer asks";
}

TEST_F(Crowding, AnotherClientIsServedFromTheFirstStepOn) {
  EXPECT_GE(Ask(120, "greedy", 6000), kStreams);
  EXPECT_LE(TimeOf("other", 5), 10 * kStep) << last_;
}

TEST_F(Crowding, AnotherClientHasItsShareOfTheStreamsAndNotMore) {
  Ask(30, "greedy", 6000);
  RunFor(absl::Seconds(3));
  EXPECT_GE(Ask(30, "other", 6000), kStreams / 2);
  for (int i = 0; i < 10; ++i) {
    RunFor(kStep);
    EXPECT_EQ(Streams(), kStreams) << "no stream stays empty in step " << i;
  }
  EXPECT_EQ(harness_.queue.LoadOf("other").running, kStreams / 2);
  EXPECT_EQ(harness_.queue.LoadOf("greedy").running, kStreams / 2);
  Ask(1, "third", 6000);
  RunFor(kStep);
  EXPECT_EQ(harness_.queue.LoadOf("third").running, 1);
  EXPECT_EQ(Streams(), kStreams);
}

TEST_F(Crowding, ManySmallRequestsOfAClientDoNotFillTheQueueForOthers) {
  EXPECT_GE(Ask(2000, "greedy", 1), 1024);
  EXPECT_EQ(last_.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(TimeOf("other", 5), 10 * kStep) << last_;
}

// 512 rows a step: each of the long prompts takes four seconds.
TEST_F(Crowding, ALongPromptDoesNotWaitForThoseOfAnotherClient) {
  const auto ask = [&](const std::string& client, int64_t tokens) {
    static uint32_t seed = 0;
    GenerationRequest request = SomeGeneration(tokens, 1, ++seed);
    request.context.client = client;
    listeners_.push_back(std::make_shared<RecordingGenerationListener>());
    last_ = harness_.Submit(std::move(request), listeners_.back());
    EXPECT_TRUE(last_.ok()) << last_;
  };
  ask("greedy", 20'000);
  RunFor(absl::Seconds(3));  // the cost of a step is known now
  for (int i = 0; i < 8; ++i) ask("greedy", 100'000);
  EXPECT_EQ(Ask(8, "greedy", 300), 8) << last_;
  RunFor(absl::Seconds(1));
  ASSERT_EQ(Streams(), kStreams);
  ask("other", 20'000);
  RunFor(absl::Milliseconds(100));
  EXPECT_EQ(harness_.queue.LoadOf("other").running, 1) << "it has displaced one";
}

TEST_F(Crowding, DisplacedStreamsEndAsIfTheyHadRunAlone) {
  const GenerationRequest request = Request("greedy", 300);
  std::vector<Listener> streams;
  for (int64_t i = 0; i < kStreams; ++i) streams.push_back(harness_.Generate(request));
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(TimeOf("other", 5), 10 * kStep);
    RunFor(absl::Milliseconds(500));
  }
  harness_.RunToEnd();
  for (const Listener& stream : streams) EXPECT_EQ(stream->tokens, harness_.TokensAlone(request));
}

TEST_F(Crowding, AClientThatIsAloneIsNotRefusedWhatFindsAStream) {
  EXPECT_EQ(Ask(10, "", 6000), 10) << "in one step, on a fresh server";
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Streams(), 10);
}

TEST_F(Crowding, AClientThatIsAloneIsNotRefusedWhatFindsAStreamWhenTheCostIsKnown) {
  TimeOf("", 40);
  EXPECT_EQ(Ask(10, "", 6000), 10) << "in one step: " << last_;
  EXPECT_EQ(Ask(6, "", 6000), 6) << last_;
  EXPECT_LE(Ask(20, "", 6000), 1) << "what must wait for a stream waits for minutes";
}

// Until the steps' cost is known, a request is taken to be slow, and a refused call comes back when it is known: not
// when the slow machine that is assumed would be done.
TEST_F(Crowding, AFreshServerAdmitsAboutAMinuteOfWork) {
  const int64_t admitted = Ask(200, "", 6000);
  EXPECT_GE(admitted, kStreams);
  EXPECT_LE(admitted, kStreams + 2);
  EXPECT_EQ(GetRefusal(last_)->retry_after, kMinRetryDelayOfUnknown);
  RunFor(absl::Seconds(1));
  Ask(200, "", 6000);
  EXPECT_GT(GetRefusal(last_)->retry_after, kMinRetryDelayOfUnknown) << "streams of two minutes";
}

TEST_F(Crowding, AFreshServerAdmitsManySmallRequests) { EXPECT_EQ(Ask(1000, "", 5), 1000) << last_; }

// The cache has room for about three streams; the others wait for that.
class CrowdingOfTheCache : public Crowding {
 protected:
  CrowdingOfTheCache() : Crowding(/*cache_bytes=*/15000) {}
};

TEST_F(CrowdingOfTheCache, AnotherClientIsServedInAFewSteps) {
  Ask(30, "greedy", 6000);
  RunFor(absl::Seconds(3));
  EXPECT_LT(Streams(), kStreams);
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(TimeOf("other", 5), 20 * kStep) << last_;
    RunFor(absl::Seconds(1));
  }
}

}  // namespace longshort::core::crowding_test
