// More work than a worker can do, for a simulated minute: what is admitted is done in bounded time, the rest is refused
// at once, and everything is accounted for.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/engine/item_queue.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort {
namespace {

constexpr absl::Duration kMinute = absl::Minutes(1);

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

// A language model whose step takes 5 ms, 0.3 ms for each sequence that decodes and 0.1 ms for each row of a prompt,
// with requests of 100 tokens to read and 20 to generate: with 16 streams about 22 ms of its time each, or 45 a second.
class StreamsUnderLoad {
 public:
  explicit StreamsUnderLoad(const RequestQueue::Options& options) : harness_({.max_streams = 16}, options) {
    harness_.model.on_step = [this](absl::Span<const Slice> slices) {
      double milliseconds = 5;
      for (const Slice& slice : slices) {
        const auto tokens = static_cast<double>(slice.tokens.size());
        milliseconds += tokens == 1 ? 0.3 : 0.1 * tokens;
      }
      harness_.clock.Advance(absl::Milliseconds(milliseconds));
      return absl::OkStatus();
    };
  }

  struct Outcome {
    int64_t refused = 0;
    std::vector<absl::Duration> latencies;  // of those admitted
  };

  Outcome Run(double per_second) {
    Outcome outcome;
    Arrivals arrivals(per_second, harness_.clock.Now());
    const absl::Time end = harness_.clock.Now() + kMinute;
    std::vector<std::shared_ptr<RecordingGenerationListener>> admitted;
    int64_t sent = 0;
    while (harness_.clock.Now() < end) {
      for (; arrivals.next() <= harness_.clock.Now(); arrivals.Draw()) {
        const auto listener = Submit(static_cast<uint32_t>(++sent));
        listener == nullptr ? ++outcome.refused : (admitted.push_back(listener), 0);
      }
      if (!harness_.loop->RunOnce()) harness_.clock.Advance(arrivals.next() - harness_.clock.Now());
    }
    harness_.RunToEnd();
    for (const auto& listener : admitted) {
      EXPECT_TRUE(listener->end.ended() && listener->status.ok()) << listener->status;
      const RequestTimings& timings = listener->summary.timings;
      outcome.latencies.push_back(timings.queue + timings.prefill + timings.decode);
    }
    EXPECT_EQ(sent, outcome.refused + static_cast<int64_t>(outcome.latencies.size()));
    EXPECT_EQ(harness_.queue.size(), 0);
    return outcome;
  }

  StepLoopHarness& harness() { return harness_; }

 private:
  // Null if it is refused, which must say when to come back.
  std::shared_ptr<RecordingGenerationListener> Submit(uint32_t seed) {
    auto listener = std::make_shared<RecordingGenerationListener>();
    const absl::Status status = harness_.Submit(SomeGeneration(100, 20, seed % 100), listener);
    if (status.ok()) return listener;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    const auto refusal = GetRefusal(status);
    EXPECT_TRUE(refusal.has_value());
    EXPECT_GT(refusal->retry_after, absl::ZeroDuration());
    EXPECT_GT(refusal->queue_depth, 0);
    return nullptr;
  }

  StepLoopHarness harness_;
};

TEST(StreamsUnderOverload, WhatIsAdmittedTakesAtMostTwiceAsLongAsAtEightyPercentLoad) {
  RequestQueue::Options options;
  options.limits.max_queued_cost = absl::Milliseconds(200);
  const StreamsUnderLoad::Outcome usual = StreamsUnderLoad(options).Run(0.8 * 45);
  const StreamsUnderLoad::Outcome overload = StreamsUnderLoad(options).Run(5 * 45);
  RecordProperty("p99 at 80 %", absl::FormatDuration(Percentile99(usual.latencies)));
  RecordProperty("p99 at 500 %", absl::FormatDuration(Percentile99(overload.latencies)));
  EXPECT_LE(Percentile99(overload.latencies), 2 * Percentile99(usual.latencies));
  EXPECT_LT(usual.refused, 0.01 * 0.8 * 45 * 60);
  // A fifth can be done: the worker is kept busy.
  EXPECT_GT(overload.latencies.size(), 0.8 * 45 * 60);
}

TEST(StreamsUnderOverload, ShortRequestsTakeAtMostThreeTimesAsLongWhileALongPromptIsRead) {
  const auto percentile = [](bool beside_long_prompts) {
    StreamsUnderLoad load({});
    StepLoopHarness& harness = load.harness();
    std::shared_ptr<RecordingScoringListener> long_document;
    std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
    std::mt19937 random(5);
    for (int i = 0; i < 100; ++i) {
      const absl::Time next = harness.clock.Now() + absl::Milliseconds(300 + random() % 200);
      while (harness.clock.Now() < next) {
        if (beside_long_prompts && (long_document == nullptr || long_document->end.ended())) {
          long_document = harness.Score(SomeScoring(32'768));
        }
        if (!harness.loop->RunOnce()) harness.clock.Advance(absl::Milliseconds(1));
      }
      listeners.push_back(harness.Generate(SomeGeneration(100, 20)));
    }
    harness.RunToEnd();
    std::vector<absl::Duration> latencies;
    for (const auto& listener : listeners) {
      const RequestTimings& timings = listener->summary.timings;
      latencies.push_back(timings.queue + timings.prefill + timings.decode);
    }
    return Percentile99(latencies);
  };
  EXPECT_LE(percentile(true), 3 * percentile(false));
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
    for (const auto& job : items_.TakeAbandoned(begin)) ++outcome.refused[job->WhyAbandoned(begin).code()];
    const BatchFormer::Batch batch = items_.TakeBatch(begin);
    for (const auto& [job, why] : batch.hopeless) ++outcome.refused[why.code()];
    if (batch.jobs.empty()) return;
    clock_.Advance(absl::Milliseconds(2 + batch.jobs.size()));
    items_.Settle(batch.jobs, clock_.Now() - begin, clock_.Now());
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

// Without a bound on the line, most of what waits in it becomes hopeless there: it is refused before it costs anything.
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

}  // namespace
}  // namespace longshort
