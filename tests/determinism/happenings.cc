#include "tests/determinism/happenings.h"

#include <algorithm>

namespace longshort {
namespace {

int64_t Evictions(const core::CacheCounters& counters) {
  return counters.evicted_parked + counters.evicted_ends + counters.evicted_window + counters.evicted_segment;
}

class EngineCounter final : public core::LanguageModelEngineObserver {
 public:
  explicit EngineCounter(Happenings& happenings) : happenings_(happenings) {}

  void OnQueued(absl::Duration) override {}
  void OnPrefilled(absl::Duration, int64_t) override {}
  void OnStep(absl::Duration, int64_t rows) override { happenings_.shared_steps += rows > 1; }
  void OnFirstToken(absl::Duration) override {}
  void OnNextToken(absl::Duration) override {}
  void OnFailure(const absl::Status&) override { ++happenings_.failed_steps; }
  void OnWorkerRebuilt(const absl::Status& status) override {
    ++(status.ok() ? happenings_.rebuilt_workers : happenings_.missing_replicas);
  }
  // A worker that is rebuilt counts from 0 again: only what was added counts.
  void OnState(const core::LanguageModelEngineState& state) override {
    const core::CacheCounters now = state.cache.counters;
    const auto add = [](Happenings::Count& count, int64_t before, int64_t after) {
      count += std::max<int64_t>(0, after - before);
    };
    add(happenings_.prefix_hits, before_.hits, now.hits);
    add(happenings_.reused_tokens, before_.reused_tokens, now.reused_tokens);
    add(happenings_.resumed, before_.resumed, now.resumed);
    add(happenings_.evictions, Evictions(before_), Evictions(now));
    before_ = now;
  }

 private:
  Happenings& happenings_;
  core::CacheCounters before_;
};

class ClassificationCounter final : public core::ClassifierEngineObserver {
 public:
  explicit ClassificationCounter(Happenings& happenings) : happenings_(happenings) {}

  void OnPrepared(absl::Duration) override {}
  void OnQueued(absl::Duration) override {}
  void OnBatch(const core::BatchReport& batch) override { happenings_.shared_batches += batch.items > 1; }
  void OnFailure(const absl::Status&) override { ++happenings_.failed_steps; }
  void OnWorkerRebuilt(const absl::Status& status) override {
    ++(status.ok() ? happenings_.rebuilt_workers : happenings_.missing_replicas);
  }
  void OnEnded(const absl::Status&) override {}
  void OnState(const core::ClassifierEngineState&) override {}

 private:
  Happenings& happenings_;
};

}  // namespace

std::vector<std::pair<std::string, int64_t>> Happenings::List() const {
  return {{"prefix hits", prefix_hits},
          {"reused tokens", reused_tokens},
          {"evictions", evictions},
          {"calls that went on with a session", session_calls},
          {"moved sessions", moved_sessions},
          {"resumed sequences", resumed},
          {"pauses", pauses},
          {"failed steps", failed_steps},
          {"rebuilt workers", rebuilt_workers},
          {"replicas not to be had", missing_replicas},
          {"swaps", swaps},
          {"cancelled requests", cancelled},
          {"shared steps", shared_steps},
          {kSharedBatches, shared_batches}};
}

std::unique_ptr<core::LanguageModelEngineObserver> CountingObserver(Happenings& happenings) {
  return std::make_unique<EngineCounter>(happenings);
}

std::unique_ptr<core::ClassifierEngineObserver> CountingClassificationObserver(Happenings& happenings) {
  return std::make_unique<ClassificationCounter>(happenings);
}

}  // namespace longshort
