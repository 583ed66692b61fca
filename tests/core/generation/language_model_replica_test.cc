// A worker's models that come and go: when, and who does its work meanwhile.

#include "core/generation/language_model_replica.h"

#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core::language_model_replica_test {

constexpr int kReplica = 0;
constexpr int kOther = 1;

// Worker 0 of two; the other one is the harness' loop.
class WorkerReplicaTest : public testing::Test {
 protected:
  WorkerReplicaTest() {
    harness_.model.on_step = [this](absl::Span<const models::Slice>) {
      return fails_ ? absl::InternalError("device lost") : absl::OkStatus();
    };
    harness_.model.on_replicate = [this] {
      return has_replicas_ ? absl::OkStatus() : absl::ResourceExhaustedError("no memory");
    };
    EXPECT_TRUE(worker_.Build().ok());
  }

  // Returns whether there is more to do at once.
  bool RunRound() { return worker_.RunRound() == absl::InfinitePast(); }
  bool RunFailingRound() {
    fails_ = true;
    const bool more = RunRound();
    fails_ = false;
    return more;
  }
  // With two requests, of which neither has failed twice alone: the first model is discarded after two failures, the
  // next one, on probation, after one.
  void DiscardModelTwice() {
    RunFailingRound();
    EXPECT_TRUE(HasModel());
    EXPECT_TRUE(RunFailingRound()) << "there is another model to be had at once";
    EXPECT_FALSE(HasModel());
    RunFailingRound();
    EXPECT_EQ(harness_.observer.rebuilt.size(), 1u);
    EXPECT_FALSE(HasModel());
  }

  bool HasModel() const { return replica_->cache() != nullptr; }

  StepLoopHarness harness_{{.worker = kOther}, RoomForAll(), SmallModelInfo(), 2};
  const models::LanguageModelWeights weights_ = WeightsOf(&harness_.model);
  bool fails_ = false;
  bool has_replicas_ = true;
  LanguageModelReplica* const replica_ =  // worker_'s
      new LanguageModelReplica(weights_, harness_.queue, harness_.sessions, harness_.clock, harness_.states,
                               {.step_loop = {.worker = kReplica}});
  ModelWorker worker_{kReplica, std::unique_ptr<ModelRunner>(replica_), harness_.queue, harness_.clock};
};

TEST_F(WorkerReplicaTest, AModelThatIsDiscardedHasASuccessorAtOnceAndThatOneASecondLater) {
  const GenerationRequest request = SomeGeneration(5, 20), other_request = SomeGeneration(7, 20, 1);
  const auto listener = harness_.Generate(request), other = harness_.Generate(other_request);
  DiscardModelTwice();
  harness_.clock.Advance(absl::Milliseconds(999));
  EXPECT_FALSE(RunRound());
  EXPECT_FALSE(HasModel());
  harness_.clock.Advance(absl::Milliseconds(1));
  while (RunRound()) continue;
  EXPECT_EQ(harness_.observer.rebuilt.size(), 2u);
  EXPECT_EQ(listener->tokens, harness_.TokensAlone(request));
  EXPECT_EQ(other->tokens, harness_.TokensAlone(other_request));
}

TEST_F(WorkerReplicaTest, WithoutAModelNewJobsGoToTheOtherWorkerAtOnce) {
  harness_.Generate(SomeGeneration(5, 20));
  has_replicas_ = false;
  for (int round = 0; round < 3; ++round) RunFailingRound();
  ASSERT_FALSE(HasModel());
  // A worker that runs fewer would have the later ones, if it had a model.
  for (int64_t streams = 1; streams <= 4; ++streams) {
    harness_.RunOnce();
    ASSERT_EQ(harness_.loop->state().active_streams, streams);
    harness_.Generate(SomeGeneration(7, 20, static_cast<uint32_t>(streams)));
  }
}

TEST_F(WorkerReplicaTest, TriesAgainEverySecondWhileNoModelIsToBeHad) {
  harness_.Generate(SomeGeneration(5, 20));
  has_replicas_ = false;
  RunFailingRound();
  RunFailingRound();
  for (int second = 0; second < 3; ++second) {
    EXPECT_FALSE(RunRound());
    EXPECT_FALSE(RunRound()) << "not twice at once";
    harness_.clock.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(harness_.observer.rebuilt.size(), 3u);
  EXPECT_EQ(harness_.observer.rebuilt.back(), absl::ResourceExhaustedError("no memory"));
  has_replicas_ = true;
  RunRound();
  EXPECT_TRUE(HasModel());
}

TEST_F(WorkerReplicaTest, EndsAbandonedJobsWithoutAModelToo) {
  GenerationRequest request = SomeGeneration(5, 20);
  const auto cancelled = request.context.cancelled;
  const auto listener = harness_.Generate(std::move(request));
  const auto other = harness_.Generate(SomeGeneration(5, 20));
  DiscardModelTwice();
  *cancelled = true;
  EXPECT_FALSE(RunRound());
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(other->end.ended());
  harness_.queue.EndNow();
  EXPECT_FALSE(RunRound());
  EXPECT_EQ(other->status.code(), absl::StatusCode::kUnavailable);
}

}  // namespace longshort::core::language_model_replica_test
