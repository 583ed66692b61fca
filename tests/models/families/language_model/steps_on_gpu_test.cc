// The engine's steps on an emulated GPU: how large they are, and what time they take.

#include <memory>
#include <string>
#include <vector>

#include "core/generation/step_loop.h"
#include "core/requests/language_model_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/recording_listeners.h"
#include "tests/models/families/language_model/emulated_backends.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::steps_on_gpu_test {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::Lt;
using ::testing::SizeIs;

constexpr WorkerDevice kWorker = {.kind = DeviceKind::kEmulated};
// Room for the pages of the largest step.
constexpr int64_t kCacheBytes = int64_t{64} << 20;

class StepsOnGpu : public testing::Test {
 protected:
  void Serve(const core::StepLoop::Options& options, int64_t max_graph_rows = 0,
             const LanguageModelConfig& config = QuickConfig()) {
    const EmulatedBackends backends(
        {}, [this](EmulatedDevice& device) { device_ = &device; }, loss_, max_graph_rows);
    model_ = RandomModelOn(OnDevice("", kWorker, &backends), config, 5);
    vocabulary_ = *core::Vocabulary::Make(model_->info().vocabulary_size, nullptr);
    loop_ = *core::StepLoop::Create(*model_, queue_, clock_, states_, options);
  }
  std::shared_ptr<core::RecordingGenerationListener> Generate(int64_t prompt_tokens, int64_t max_tokens,
                                                              int32_t first = 0, const std::string& client = "") {
    core::GenerationRequest request;
    request.context.client = client;
    for (int64_t i = 0; i < prompt_tokens; ++i) request.prompt.push_back(static_cast<int32_t>((first + i * i) % 31));
    request.max_tokens = max_tokens;
    auto listener = std::make_shared<core::RecordingGenerationListener>();
    auto job = core::MakeJob(std::move(request), listener, vocabulary_, observer_, sessions_);
    EXPECT_TRUE(queue_.Push(*std::move(job)).ok());
    return listener;
  }
  void RunToEnd() {
    while (loop_->RunOnce()) {
    }
  }
  std::vector<int64_t> RowsOfSteps() const {
    std::vector<int64_t> rows;
    for (const auto& [time, count] : observer_.steps) rows.push_back(count);
    return rows;
  }
  std::vector<absl::Duration> TimesOfSteps() const {
    std::vector<absl::Duration> times;
    for (const auto& [time, rows] : observer_.steps) times.push_back(time);
    return times;
  }

  core::FakeClock clock_;  // stands still: only the device's work takes time
  core::RecordingObserver observer_;
  const std::shared_ptr<GpuLoss> loss_ = std::make_shared<GpuLoss>();
  EmulatedDevice* device_ = nullptr;
  std::unique_ptr<LanguageModel> model_;
  core::Vocabulary vocabulary_;
  core::SessionStore sessions_{clock_, {}};
  core::RequestQueue queue_{{.limits = {.max_queued = 2000, .max_queued_cost = absl::InfiniteDuration()}}, {kWorker}};
  core::WorkerStates states_{1, queue_, observer_};
  std::unique_ptr<core::StepLoop> loop_;
};

// The largest graph has 512 rows.
TEST_F(StepsOnGpu, MoreStreamsThanAGraphHasRowsDecodeInOneStep) {
  Serve({.max_streams = 600});
  for (int32_t i = 0; i < 600; ++i) Generate(1, 2, i);
  RunToEnd();
  EXPECT_THAT(RowsOfSteps(), ElementsAre(600, 600));  // a token of each prompt, then one sampled token of each
}

// On a GPU that is fast enough: the emulated one's work takes no time, unless a test says so.
TEST_F(StepsOnGpu, APromptOf8192TokensIsTwoSteps) {
  LanguageModelConfig config = QuickConfig();  // with tiles of 64 rows, not of a segment's 12
  config.chunk_size = 64;
  config.memory_length = config.segment_length = 1024;
  Serve({.max_streams = 1, .cache_bytes = kCacheBytes}, 0, config);
  Generate(8192, 1);
  RunToEnd();
  EXPECT_THAT(RowsOfSteps(), ElementsAre(4096, 4096));
}

// The logits of a document's rows need memory: 1,024 rows at least, but not those of a whole step.
TEST_F(StepsOnGpu, LogitsAreLimitedForLargeVocabularies) {
  LanguageModelConfig config = QuickConfig();
  for (const auto& [vocabulary, rows] : {std::pair{31, 4096}, std::pair{16'384, 2048}, std::pair{131'072, 1024}}) {
    config.vocabulary_size = vocabulary;
    const EmulatedBackends backends(
        {.memory_bytes = int64_t{1} << 30}, [](EmulatedDevice&) {}, loss_, 0);
    const StepLimits limits = RandomModelOn(OnDevice("", kWorker, &backends), config, 5)->info().step_limits;
    EXPECT_EQ(limits.rows, 4096);
    EXPECT_EQ(limits.logit_rows, rows);
  }
}

// Most steps of a long prompt have no logits, so the host does not wait for their results.
TEST_F(StepsOnGpu, AStepTakesTheDevicesTimeWithoutLogitsToo) {
  Serve({.max_streams = 1, .steps = {.max_rows = 64}});
  device_->SetWorkTime([](const std::string& work) {
    return work == "AttendFromTiles" || work == "AttendToBlocks" ? absl::Milliseconds(7) : absl::ZeroDuration();
  });
  Generate(256, 2);
  RunToEnd();
  EXPECT_THAT(observer_.steps, SizeIs(Gt(4)));
  // A step has one kind of rows, or both.
  EXPECT_THAT(TimesOfSteps(), Each(AnyOf(absl::Milliseconds(7), absl::Milliseconds(14))));
}

TEST_F(StepsOnGpu, ThePlannerLearnsTheDevicesTime) {
  Serve({.max_streams = 1, .steps = {.max_rows = 256}, .cache_bytes = kCacheBytes});
  device_->SetWorkTime(
      [](const std::string& work) { return work == "AttendFromTiles" ? absl::Seconds(1) : absl::ZeroDuration(); });
  Generate(256 + 32, 1);
  RunToEnd();
  // 256 rows in a second, and a step should take 30 ms.
  EXPECT_EQ(RowsOfSteps().front(), 256);
  EXPECT_THAT(RowsOfSteps()[1], Lt(32));
}

// A prompt takes ten times as long as a token, so its client has one prompt for about ten tokens of the other client.
// By the host's clock, which stands still, both would have as many.
TEST_F(StepsOnGpu, ClientsShareTheDevicesTime) {
  Serve({.max_streams = 1});
  device_->SetWorkTime([](const std::string& work) {
    if (work == "AttendFromTiles") return absl::Milliseconds(10);
    return work == "AttendToBlocks" ? absl::Milliseconds(1) : absl::ZeroDuration();
  });
  constexpr int64_t kPrompts = 6;
  int64_t prompts = 0, tokens = 0;
  for (int32_t i = 0; i < kPrompts; ++i) Generate(60, 1, i, "prompts")->on_delta = [&] { ++prompts; };
  for (int32_t i = 0; i < 20 * kPrompts; ++i) {
    Generate(1, 1, i, "tokens")->on_delta = [&] { tokens += prompts < kPrompts ? 1 : 0; };
  }
  RunToEnd();
  EXPECT_EQ(prompts, kPrompts);
  EXPECT_GE(tokens, 8 * (kPrompts - 1));
  EXPECT_LE(tokens, 12 * kPrompts);
}

// While a token is sampled, the device has the step of the other half of the streams. So the worker samples nothing
// between the end of a step and the next launch.
TEST_F(StepsOnGpu, TheNextStepIsLaunchedBeforeTokensAreSampled) {
  constexpr int64_t kStreams = 8, kTokens = 10;
  Serve({.max_streams = kStreams}, /*max_graph_rows=*/kStreams);
  device_->SetWorkTime([](const std::string&) { return absl::Microseconds(1); });
  std::vector<int64_t> queued;  // the device's work when a token was sampled
  for (int32_t i = 0; i < kStreams; ++i) {
    Generate(1, kTokens, i)->on_delta = [&] {
      clock_.Advance(absl::Milliseconds(1));
      queued.push_back(device_->queued());
    };
  }
  RunToEnd();
  ASSERT_THAT(queued, SizeIs(kStreams * kTokens));
  // The first tokens show how long sampling takes. With the last ones nothing is left to run.
  queued.erase(queued.begin(), queued.begin() + 2 * kStreams);
  queued.resize(queued.size() - kStreams);
  EXPECT_THAT(queued, Each(Gt(0)));
}

TEST_F(StepsOnGpu, AStepWithoutLogitsReportsItsOwnFailure) {
  for (const int64_t max_graph_rows : {0, 64}) {
    observer_.failures.clear();
    observer_.steps.clear();
    Serve({.max_streams = 2, .steps = {.max_rows = 32}}, max_graph_rows);
    const auto listener = Generate(64, 1);
    if (max_graph_rows > 0) {
      device_->FailAfterReplays(0, DeviceFault::kLost);
    } else {
      device_->FailAfter(2, DeviceFault::kLost);
    }
    while (observer_.steps.empty()) loop_->RunOnce();
    EXPECT_THAT(observer_.failures, SizeIs(1)) << "the first step has 32 of 64 rows, and no logits";
    EXPECT_THAT(observer_.steps, SizeIs(1));
    loop_->EndAll(absl::CancelledError("the test ends"));
    loop_.reset();
  }
}

}  // namespace longshort::models::steps_on_gpu_test
