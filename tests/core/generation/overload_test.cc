// More work than a worker can do, for a simulated minute: what is admitted is done in bounded time, the rest is refused
// at once, and everything is accounted for.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/classification/item_queue.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::overload_test {

constexpr absl::Duration kMinute = absl::Minutes(1);
constexpr absl::Duration kWarmUp = absl::Seconds(10);

absl::Duration Percentile99(std::vector<absl::Duration> times) {
  EXPECT_FALSE(times.empty());
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100];
}

// When things happen that happen `per_second` times a second on average, each whenever it likes.
class Arrivals {
 public:
  explicit Arrivals(double per_second, absl::Time begin) : gap_(per_second), next_(begin) { Draw(); }
  absl::Time next() const { return next_; }
  void Draw() { next_ += absl::Trunc(absl::Seconds(gap_(random_)), absl::Microseconds(1)); }

 private:
  std::mt19937 random_{3};
  std::exponential_distribution<> gap_;
  absl::Time next_;
};

// What a step takes, in milliseconds, and what requests ask for.
struct Streams {
  double fixed = 0;
  double decoding_row = 0;
  double prompt_row = 0;
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;
  double capacity = 0;  // of 16 streams: requests a second
};

// 16 streams decode in 9.8 ms; a request takes 20 of their steps' sixteenths and 10 ms for its prompt: 22 ms.
constexpr Streams kDecodesMostly = {5, 0.3, 0.1, 100, 20, 45};
// As with 2 cores and 44 million parameters. A step has time for one chunk of a prompt, so four streams decode beside
// each that is read, and a request takes four steps of 6 + 4 + 24 ms.
constexpr Streams kReadsMostly = {6, 1, 1.5, 64, 16, 7.35};

models::LanguageModelInfo ModelWithChunksOf16() {
  models::LanguageModelInfo info = SmallModelInfo();
  info.chunk_size = 16;
  info.memory_length = 80;
  info.segment_length = 48;
  return info;
}

// Options of a server that should refuse hardly anything at 80 % load: at random arrivals, a hundredth of the requests
// find more than eight before them.
RequestQueue::Options RoomForEight(const Streams& streams) {
  RequestQueue::Options options;
  options.limits.max_queued_cost = absl::Seconds(8 / streams.capacity);
  return options;
}

class StreamsUnderLoad {
 public:
  explicit StreamsUnderLoad(const Streams& streams) : StreamsUnderLoad(streams, RoomForEight(streams)) {}
  StreamsUnderLoad(const Streams& streams, const RequestQueue::Options& options)
      : streams_(streams), harness_({.max_streams = 16}, options, ModelWithChunksOf16()) {
    harness_.model.on_step = [this](absl::Span<const models::Slice> slices) {
      double milliseconds = streams_.fixed;
      for (const models::Slice& slice : slices) {
        const auto tokens = static_cast<double>(slice.tokens.size());
        milliseconds += tokens == 1 ? streams_.decoding_row : streams_.prompt_row * tokens;
      }
      harness_.clock.Advance(absl::Milliseconds(milliseconds));
      return absl::OkStatus();
    };
  }

  struct Outcome {
    int64_t sent = 0;
    int64_t refused = 0;
    int64_t answered_in_time = 0;           // before the last request was sent
    std::vector<absl::Duration> latencies;  // of those admitted
    std::vector<absl::Duration> waits;      // of those, in the queue
  };

  // At so many times its capacity; before, for a while at 80 %, so that what steps and requests take is known.
  Outcome Run(double load) {
    RunFor(kWarmUp, 0.8);
    return RunFor(kMinute, load);
  }

  // Its prompt is its own: nothing of it was read before.
  static GenerationRequest Request(int64_t prompt_tokens, int64_t max_tokens, uint32_t seed) {
    GenerationRequest request = SomeGeneration(prompt_tokens, max_tokens, seed);
    std::mt19937 random(seed);
    for (int32_t& token : request.prompt) token = static_cast<int32_t>(4 + random() % 11);
    return request;
  }

  StepLoopHarness& harness() { return harness_; }

  Outcome RunFor(absl::Duration duration, double load) {
    Outcome outcome;
    Arrivals arrivals(load * streams_.capacity, harness_.clock.Now());
    const absl::Time end = harness_.clock.Now() + duration;
    std::vector<std::shared_ptr<RecordingGenerationListener>> admitted;
    while (harness_.clock.Now() < end) {
      for (; arrivals.next() <= harness_.clock.Now(); arrivals.Draw()) {
        ++outcome.sent;
        const auto listener = Submit();
        listener == nullptr ? ++outcome.refused : (admitted.push_back(listener), 0);
      }
      if (!harness_.loop->RunOnce()) harness_.clock.Advance(arrivals.next() - harness_.clock.Now());
    }
    for (const auto& listener : admitted) outcome.answered_in_time += listener->end.ended() ? 1 : 0;
    harness_.RunToEnd();
    for (const auto& listener : admitted) {
      EXPECT_TRUE(listener->end.ended() && listener->status.ok()) << listener->status;
      const RequestTimings& timings = listener->summary.timings;
      outcome.latencies.push_back(timings.queue + timings.prefill + timings.decode);
      outcome.waits.push_back(timings.queue);
    }
    EXPECT_EQ(outcome.sent, outcome.refused + static_cast<int64_t>(outcome.latencies.size()));
    EXPECT_EQ(harness_.queue.size(), 0);
    return outcome;
  }

 private:
  // Null if it is refused, which must say when to come back.
  std::shared_ptr<RecordingGenerationListener> Submit() {
    auto listener = std::make_shared<RecordingGenerationListener>();
    const absl::Status status =
        harness_.Submit(Request(streams_.prompt_tokens, streams_.max_tokens, ++requests_), listener);
    if (status.ok()) return listener;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    const auto refusal = GetRefusal(status);
    EXPECT_TRUE(refusal.has_value());
    EXPECT_GT(refusal->retry_after, absl::ZeroDuration());
    EXPECT_GT(refusal->queue_depth, 0);
    return nullptr;
  }

  const Streams streams_;
  StepLoopHarness harness_;
  uint32_t requests_ = 0;
};

class StreamsUnderOverload : public testing::TestWithParam<Streams> {};

INSTANTIATE_TEST_SUITE_P(Machines, StreamsUnderOverload, testing::Values(kDecodesMostly, kReadsMostly),
                         [](const auto& machine) { return machine.index == 0 ? "DecodesMostly" : "ReadsMostly"; });

TEST_P(StreamsUnderOverload, WhatIsAdmittedTakesAtMostTwiceAsLongAsAtEightyPercentLoad) {
  const StreamsUnderLoad::Outcome usual = StreamsUnderLoad(GetParam()).Run(0.8);
  const StreamsUnderLoad::Outcome overload = StreamsUnderLoad(GetParam()).Run(5);
  RecordProperty("p99 at 80 %", absl::FormatDuration(Percentile99(usual.latencies)));
  RecordProperty("p99 at 500 %", absl::FormatDuration(Percentile99(overload.latencies)));
  EXPECT_LE(Percentile99(overload.latencies), 2 * Percentile99(usual.latencies));
  EXPECT_LT(usual.refused, 0.01 * static_cast<double>(usual.sent));
  // A fifth can be done: the worker is kept busy.
  EXPECT_GT(overload.answered_in_time, 0.95 * 60 * GetParam().capacity);
}

// From the first request on. Until the cost of steps is known, no request is refused for its predicted wait. The costs
// are learned from steps that are all alike.
TEST_P(StreamsUnderOverload, TheQueueIsHardlyEverLongerThanItIsAllowedToBe) {
  std::vector<absl::Duration> waits = StreamsUnderLoad(GetParam()).RunFor(kMinute, 5).waits;
  std::sort(waits.begin(), waits.end());
  EXPECT_LE(waits[waits.size() * 9 / 10], RoomForEight(GetParam()).limits.max_queued_cost);
  EXPECT_GE(waits[waits.size() / 2], 0.5 * RoomForEight(GetParam()).limits.max_queued_cost);
}

TEST_P(StreamsUnderOverload, ALongPromptIsReadHoweverManyShorterOnesCome) {
  StreamsUnderLoad load(GetParam(), {});
  load.RunFor(kWarmUp, 0.8);
  for (uint32_t i = 0; i < 20; ++i) load.harness().Generate(StreamsUnderLoad::Request(64, 16, i));
  const auto longest = load.harness().Score(SomeScoring(2000));
  const auto shorter = load.harness().Score(SomeScoring(500));
  load.RunFor(kMinute, 5);
  // A quarter of the time for prompts is for those that came first.
  for (const auto& listener : {shorter, longest}) {
    ASSERT_TRUE(listener->score.ok()) << listener->score.status();
    const RequestTimings& timings = listener->score->timings;
    EXPECT_LT(timings.queue, absl::Seconds(10));
    EXPECT_LT(timings.queue + timings.prefill, kMinute / 2);
  }
}

// All of them come before the short requests, and are another client's. There are 16 streams.
TEST(StreamsBesideLongPrompts, ShortRequestsTakeAtMostThreeTimesAsLongAsAlone) {
  const auto percentile = [](size_t long_prompts) {
    RequestQueue::Options options;
    options.limits.max_queued_cost = absl::InfiniteDuration();
    StreamsUnderLoad load(kDecodesMostly, options);
    StepLoopHarness& harness = load.harness();
    std::vector<std::shared_ptr<RecordingScoringListener>> long_documents(long_prompts);
    std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
    std::mt19937 random(5);
    uint32_t texts = 0;
    for (uint32_t i = 0; i < 100; ++i) {
      const absl::Time next = harness.clock.Now() + absl::Milliseconds(300 + random() % 200);
      while (harness.clock.Now() < next) {
        for (auto& document : long_documents) {
          if (document != nullptr && !document->end.ended()) continue;
          ScoringRequest request;
          request.tokens = StreamsUnderLoad::Request(8192, 1, ++texts).prompt;
          request.context.client = "reader of long texts";
          document = harness.Score(std::move(request));
        }
        if (!harness.loop->RunOnce()) harness.clock.Advance(absl::Milliseconds(1));
      }
      listeners.push_back(harness.Generate(StreamsUnderLoad::Request(100, 20, i)));
    }
    harness.RunToEnd();
    std::vector<absl::Duration> latencies;
    for (const auto& listener : listeners) {
      const RequestTimings& timings = listener->summary.timings;
      latencies.push_back(timings.queue + timings.prefill + timings.decode);
    }
    return Percentile99(latencies);
  };
  const absl::Duration alone = percentile(0);
  EXPECT_LE(percentile(1), 3 * alone);
  EXPECT_LE(percentile(40), 3 * alone);
}

// A classifier that takes 2 ms for a batch and 1 ms for each item of it: up to 941 items a second.
class ItemsUnderLoad {
 public:
  explicit ItemsUnderLoad(const ItemQueue::Options& options) : items_(options) {}

  struct Outcome {
    std::map<absl::StatusCode, int64_t> refused;
    int64_t late = 0;  // done, but too late
    std::map<std::string, std::vector<absl::Duration>> latencies;
  };

  // `request` makes the contexts, in turn.
  Outcome Run(double per_second, const std::function<RequestContext(absl::Time now, int64_t number)>& request) {
    Outcome outcome;
    Arrivals arrivals(per_second, clock_.Now());
    const absl::Time end = clock_.Now() + kMinute;
    int64_t sent = 0;
    while (clock_.Now() < end) {
      for (; arrivals.next() <= clock_.Now(); arrivals.Draw()) {
        ++sent;
        ClassificationRequest item{.context = request(clock_.Now(), sent), .item = Document(1), .bytes = 1};
        auto job = std::make_unique<ClassificationJob>(std::move(item), nullptr, clock_.Now());
        const absl::Status status = items_.Admit(std::move(job), clock_.Now());
        if (!status.ok()) ++outcome.refused[status.code()];
      }
      if (items_.prepared() == 0) clock_.Advance(arrivals.next() - clock_.Now());
      RunBatch(outcome);
    }
    while (items_.prepared() > 0) RunBatch(outcome);
    int64_t ended = 0;
    for (const auto& [code, count] : outcome.refused) ended += count;
    for (const auto& [client, latencies] : outcome.latencies) ended += static_cast<int64_t>(latencies.size());
    EXPECT_EQ(ended, sent);
    EXPECT_EQ(items_.state().waiting_items, 0);
    EXPECT_EQ(items_.state().waiting_bytes, 0);
    return outcome;
  }

 private:
  void RunBatch(Outcome& outcome) {
    const absl::Time begin = clock_.Now();
    for (const auto& job : items_.TakeAbandoned(begin)) ++outcome.refused[job->CheckNotAbandoned(begin).code()];
    const BatchFormer::Batch batch = items_.TakeBatch(begin);
    for (const auto& [job, why] : batch.too_late) ++outcome.refused[why.code()];
    if (batch.jobs.empty()) return;
    clock_.Advance(absl::Milliseconds(2 + batch.jobs.size()));
    items_.Complete(0, batch.jobs, clock_.Now() - begin, clock_.Now());
    for (const auto& job : batch.jobs) {
      outcome.latencies[job->context().client].push_back(clock_.Now() - job->submitted());
      outcome.late += clock_.Now() > job->context().deadline ? 1 : 0;
    }
  }

  ItemQueue items_;
  FakeClock clock_;
};

TEST(ItemsUnderOverload, WaitForAsLongAsTheLineMayBeAndNoLonger) {
  ItemQueue::Options options;
  options.limits.max_queued_cost = absl::Milliseconds(100);
  const auto outcome = ItemsUnderLoad(options).Run(5 * 941, [](absl::Time, int64_t) { return RequestContext(); });
  const std::vector<absl::Duration>& latencies = outcome.latencies.at("");
  EXPECT_LE(Percentile99(latencies), absl::Milliseconds(100 + 2 * 34));  // the line, the batch before it, and its own
  EXPECT_GT(latencies.size(), 0.95 * 941 * 60);
  EXPECT_EQ(outcome.refused.count(absl::StatusCode::kDeadlineExceeded), 0u);
}

// Without a bound on the queue, most queued items become too late. They are refused before they cost worker time.
TEST(ItemsUnderOverload, TheWorkerDoesHardlyAnythingThatIsTooLateThen) {
  ItemQueue::Options options;
  options.limits = {.max_queued = 100'000, .max_queued_cost = absl::Hours(1)};
  const auto outcome = ItemsUnderLoad(options).Run(5 * 941, [](absl::Time now, int64_t) {
    RequestContext context;
    context.deadline = now + absl::Milliseconds(200);
    return context;
  });
  const size_t done = outcome.latencies.at("").size();
  EXPECT_GT(outcome.refused.at(absl::StatusCode::kDeadlineExceeded), 3 * 941 * 60);
  EXPECT_GT(done, 0.5 * 941 * 60);
  EXPECT_LT(static_cast<double>(outcome.late), 0.1 * static_cast<double>(done));
}

// "greedy" sends nine of ten requests. Each of the others has a share that is larger than all it asks for.
TEST(ItemsUnderOverload, AClientThatAsksForLittleHardlyNoticesOneThatAsksForTooMuch) {
  ItemQueue::Options options;
  options.limits = {.max_queued = 100'000,
                    .max_queued_cost = absl::Hours(1),
                    .max_queued_per_client = 1000,
                    .max_queued_cost_per_client = absl::Seconds(1)};
  const auto outcome = ItemsUnderLoad(options).Run(2 * 941, [](absl::Time, int64_t number) {
    RequestContext context;
    context.client = number % 10 == 0 ? "modest" : "greedy";
    return context;
  });
  EXPECT_LE(Percentile99(outcome.latencies.at("modest")), absl::Milliseconds(3 * 34));
  EXPECT_GE(Percentile99(outcome.latencies.at("greedy")), absl::Milliseconds(500));
  EXPECT_GT(outcome.refused.at(absl::StatusCode::kResourceExhausted), 0);
}

}  // namespace longshort::core::overload_test
