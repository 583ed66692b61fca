// Random mixes of requests, clients that leave and steps that fail.

#include <limits>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_random_test {

class RandomRequests {
 public:
  explicit RandomRequests(uint32_t seed) : random_(seed) {}

  int64_t UpTo(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max)) + 1; }
  bool OneIn(int64_t n) { return UpTo(n) == 1; }

  GenerationRequest Generation() {
    GenerationRequest request = SomeGeneration(UpTo(OneIn(5) ? 400 : 40), UpTo(60), static_cast<uint32_t>(UpTo(1000)));
    SamplingOptions& sampling = request.sampling;
    sampling.temperature = OneIn(3) ? 0 : 0.2 * static_cast<double>(UpTo(10));
    request.context.client = Client();
    if (OneIn(3)) sampling.top_k = UpTo(10);
    if (OneIn(3)) sampling.top_p = 0.1 * static_cast<double>(UpTo(9));
    if (OneIn(4)) sampling.min_p = 0.05 * static_cast<double>(UpTo(9));
    if (OneIn(4)) sampling.repetition_penalty = 1.3;
    if (OneIn(4)) sampling.frequency_penalty = 0.2;
    if (OneIn(4)) sampling.presence_penalty = 0.5;
    if (OneIn(4)) sampling.logit_bias = {{static_cast<int32_t>(UpTo(15)), 1.5f}};
    sampling.completion = static_cast<uint32_t>(UpTo(4));
    request.log_probabilities = OneIn(2);
    request.prompt_log_probabilities = OneIn(4);
    return request;
  }

  ScoringRequest Scoring() {
    ScoringRequest request = SomeScoring(UpTo(OneIn(4) ? 500 : 50), static_cast<uint32_t>(UpTo(1000)));
    request.context.client = Client();
    return request;
  }

  // One of three; the first sends most requests, so that others displace its.
  std::string Client() { return OneIn(4) ? absl::StrCat("client", UpTo(2)) : "greedy"; }

 private:
  std::mt19937 random_;
};

double TotalAlone(const ScoringRequest& request) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 1000}});
  const auto listener = harness.Score(request);
  harness.RunToEnd();
  return listener->score->total_log_probability;
}

struct Device {
  int64_t steps_at_once = 1;
  int64_t sampling_threads = 0;
};

class RandomMixes : public testing::TestWithParam<Device> {
 protected:
  void SetUpDevice(StepLoopHarness& harness) const {
    harness.model.at_once = GetParam().steps_at_once;
    harness.model.device_time = absl::Microseconds(10);
  }
  // Sampling takes longer than steps, so a device with two steps at once divides the streams.
  std::shared_ptr<RecordingGenerationListener> WithSlowSampling(
      StepLoopHarness& harness, std::shared_ptr<RecordingGenerationListener> listener) const {
    if (GetParam().steps_at_once > 1 && listener != nullptr) {
      listener->on_delta = [&harness] { harness.clock.Advance(absl::Microseconds(20)); };
    }
    return listener;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RandomMixes,
                         testing::Values(Device{}, Device{.steps_at_once = 2},
                                         Device{.steps_at_once = 2, .sampling_threads = 2}));

TEST_P(RandomMixes, GiveWhatEachRequestGivesAlone) {
  int64_t reused = 0;
  int64_t evicted = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    RandomRequests random(seed);
    const int64_t streams = random.UpTo(12);
    // Half of the rounds have room for two to four of any length, and a small part of what they leave.
    const int64_t cache_bytes = random.OneIn(2) ? 0 : 10000 + random.UpTo(10000);
    StepLoopHarness harness({.max_streams = streams,
                             .steps = {.max_rows = streams + random.UpTo(100)},
                             .cache_bytes = cache_bytes,
                             .sampling_threads = GetParam().sampling_threads},
                            {.limits = {.max_queued_cost = absl::InfiniteDuration()}});
    SetUpDevice(harness);
    std::vector<std::pair<GenerationRequest, std::shared_ptr<RecordingGenerationListener>>> generations;
    std::vector<std::pair<ScoringRequest, std::shared_ptr<RecordingScoringListener>>> scorings;
    for (int arrival = 0; arrival < 40; ++arrival) {
      if (random.OneIn(3)) {
        const ScoringRequest request = random.Scoring();
        scorings.emplace_back(request, harness.Score(request));
      } else {
        const GenerationRequest request = random.Generation();
        generations.emplace_back(request, WithSlowSampling(harness, harness.Generate(request)));
      }
      for (int64_t steps = random.UpTo(8); steps > 1; --steps) harness.loop->RunOnce();
    }
    harness.RunToEnd();
    for (const auto& [request, listener] : generations) {
      ASSERT_TRUE(listener->status.ok()) << listener->status;
      ASSERT_EQ(listener->tokens, harness.TokensAlone(request));
      reused += listener->summary.reused_tokens;
    }
    for (const auto& [request, listener] : scorings) {
      ASSERT_TRUE(listener->score.ok()) << listener->score.status();
      ASSERT_EQ(listener->score->total_log_probability, TotalAlone(request));
    }
    const CacheCounters counters = harness.loop->state().cache.counters;
    evicted += counters.evicted_window + counters.evicted_segment + counters.evicted_ends;
  }
  EXPECT_GT(reused, 500);
  EXPECT_GT(evicted, 100);
}

// Everything that can happen to a request, thousands of times: at the end each listener has heard its last call (the
// recording listeners refuse a second one) and no page is lost.
TEST_P(RandomMixes, LoseNoPageAndEndEachRequestOnceWhateverHappens) {
  RandomRequests random(77);
  StepLoopHarness harness({.max_streams = 6,
                           .steps = {.max_rows = 50},
                           .cache_bytes = 15000,
                           .sampling_threads = GetParam().sampling_threads},
                          {.limits = {.max_queued = 30, .max_queued_cost = absl::Minutes(1)}});
  SetUpDevice(harness);
  harness.model.on_step = [&](absl::Span<const models::Slice>) {
    harness.clock.Advance(absl::Milliseconds(random.UpTo(5)));
    return random.OneIn(200) ? absl::InternalError("a step failed") : absl::OkStatus();
  };
  harness.model.on_logits = [&](std::vector<float>& logits) {
    if (!logits.empty() && random.OneIn(100)) logits[random.UpTo(16) - 1] = std::numeric_limits<float>::infinity();
  };
  std::vector<std::shared_ptr<RecordingGenerationListener>> generations;
  std::vector<std::shared_ptr<RecordingScoringListener>> scorings;
  std::vector<std::shared_ptr<CancellationFlag>> flags;
  for (int event = 0; event < 8000; ++event) {
    RequestContext context;
    context.client = random.Client();
    if (random.OneIn(3)) context.deadline = harness.clock.Now() + absl::Milliseconds(random.UpTo(200));
    if (harness.queue.size() < 30 && random.OneIn(6)) {
      GenerationRequest request = random.Generation();
      request.context = context;
      if (random.OneIn(2)) request.stop_strings = {"ab", "fgh"};
      flags.push_back(context.cancelled);
      const auto listener = WithSlowSampling(harness, harness.Generate(std::move(request)));
      if (listener != nullptr) generations.push_back(listener);
    } else if (harness.queue.size() < 30 && random.OneIn(10)) {
      ScoringRequest request = random.Scoring();
      request.context = context;
      flags.push_back(context.cancelled);
      const auto listener = harness.Score(std::move(request));
      if (listener != nullptr) scorings.push_back(listener);
    } else if (!flags.empty() && random.OneIn(10)) {
      flags[random.UpTo(static_cast<int64_t>(flags.size())) - 1]->store(true);
    } else if (random.OneIn(2000)) {
      harness.loop->EndAll(absl::UnavailableError("stopping"));
    } else {
      harness.RunOnce();
    }
    ASSERT_TRUE(harness.loop->CheckInvariants().ok()) << harness.loop->CheckInvariants();
  }
  harness.RunToEnd();

  std::map<absl::StatusCode, int> ends;
  for (const auto& listener : generations) {
    ASSERT_TRUE(listener->end.ended());
    ++ends[listener->status.code()];
  }
  for (const auto& listener : scorings) {
    ASSERT_TRUE(listener->end.ended());
    ++ends[listener->score.status().code()];
  }
  EXPECT_GT(generations.size() + scorings.size(), 500u);
  for (absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kCancelled, absl::StatusCode::kInternal,
                                absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable}) {
    EXPECT_GT(ends[code], 0) << absl::StatusCodeToString(code) << " never came to pass";
  }
}

}  // namespace longshort::core::step_loop_random_test
