// Everything that can happen to sequences in a cache that is too small for them, many times over, with a model that
// looks at every row that a query sees (WitnessModel).

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/witness_model.h"

namespace longshort::core::paged_cache_random_test {

// Tokens, and what the model must find of them.
struct Text {
  std::vector<int32_t> tokens;  // from the stream's begin
  Witness witness;              // of the part that is in the cache
  bool moved = false;           // into a cache whose index does not know it
};

struct Running {
  Text text;
  int64_t max_tokens = 0;
  std::unique_ptr<CachedSequence> sequence;
};

struct Parked {
  Text text;
  ParkedId id = 0;
};

class RandomEvents {
 public:
  RandomEvents(const models::LanguageModelInfo& info, const models::CachePages& capacity, uint32_t seed)
      : info_(info), model_(info), cache_(*PagedCache::Create(model_, capacity)), random_(seed) {}

  void Happen() {
    const uint64_t event = random_() % 100;
    if (event < 60) return Step();
    if (event < 75) return Begin();
    if (event < 82) return Park();
    if (event < 88) return Resume();
    if (event < 91) return SkipRead();
    if (event < 93) return RollBack();
    if (event < 97) return End();
    if (event < 99) return Move();
    if (!parked_.empty()) {
      const size_t index = random_() % parked_.size();
      cache_->RemoveParked(parked_[index].id);
      parked_.erase(parked_.begin() + static_cast<int64_t>(index));
    }
  }

  void EndAll() {
    running_.clear();
    for (const Parked& parked : parked_) cache_->RemoveParked(parked.id);
    parked_.clear();
  }

  PagedCache& cache() { return *cache_; }
  const WitnessModel& model() const { return model_; }
  int64_t lost() const { return lost_; }
  int64_t recomputed() const { return recomputed_; }
  int64_t rolled_back() const { return rolled_back_; }
  int64_t skipped() const { return skipped_; }
  int64_t moved() const { return moved_; }
  int64_t read_tokens() const { return read_tokens_; }

 private:
  int64_t UpTo(int64_t max) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(max)) + 1; }

  // One of few texts: each block of 32 tokens is one of two.
  int32_t TokenAfter(const std::vector<int32_t>& tokens) {
    const auto position = static_cast<int64_t>(tokens.size());
    if (position % 32 == 0) return static_cast<int32_t>(random_() % 8 == 0);
    return static_cast<int32_t>(position % 7) + 2 * tokens.back() % 11;
  }

  void Step() {
    std::vector<models::Slice> slices;
    std::vector<Running*> steppers;
    model_.witnesses.clear();
    for (Running& running : running_) {
      const int64_t left = running.max_tokens - running.sequence->position();
      if (left == 0 || random_() % 4 == 0) continue;
      const int64_t wanted = random_() % 3 == 0 ? 1 : UpTo(random_() % 2 == 0 ? 20 : 200);
      const int64_t count = running.sequence->MaxTokens(std::min(left, wanted));
      const int64_t position = running.sequence->position();
      ASSERT_GE(count, 1);
      std::vector<int32_t>& tokens = running.text.tokens;
      while (static_cast<int64_t>(tokens.size()) < position + count) tokens.push_back(TokenAfter(tokens));
      models::Slice slice;
      slice.tokens = absl::MakeConstSpan(tokens).subspan(position, count);
      const absl::Status filled = running.sequence->FillIn(slice);
      ASSERT_TRUE(filled.ok()) << filled;
      for (const int32_t token : slice.tokens) running.text.witness.Append(token);
      slices.push_back(slice);
      steppers.push_back(&running);
      model_.witnesses.push_back(&running.text.witness);
      read_tokens_ += count;
    }
    const absl::Status status = model_.Step(slices).status();
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < slices.size(); ++i) steppers[i]->sequence->OnRead(slices[i].tokens);
  }

  void Begin() {
    Running running;
    for (int64_t length = UpTo(random_() % 3 == 0 ? 900 : 200); length > 0; --length) {
      running.text.tokens.push_back(TokenAfter(running.text.tokens));
    }
    const auto prompt = static_cast<int64_t>(running.text.tokens.size());
    running.max_tokens = prompt + UpTo(100);
    if (!cache_->FitsNow(running.max_tokens)) return;
    auto begun = cache_->Begin(running.text.tokens, prompt - 1, running.max_tokens);
    ASSERT_TRUE(begun.ok()) << begun.status();
    running.sequence = *std::move(begun);
    ASSERT_LT(running.sequence->position(), prompt);
    for (int64_t i = 0; i < running.sequence->position(); ++i) running.text.witness.Append(running.text.tokens[i]);
    running_.push_back(std::move(running));
  }

  void Park() {
    if (running_.empty()) return;
    Running running = TakeRunning();
    if (parked_.size() == 12) {  // one caller cancels
      cache_->RemoveParked(parked_.front().id);
      parked_.erase(parked_.begin());
    }
    parked_.push_back({.text = std::move(running.text), .id = cache_->Park(std::move(running.sequence))});
  }

  void Resume() {
    if (parked_.empty()) return;
    const size_t index = random_() % parked_.size();
    Parked& parked = parked_[index];
    Running running{.text = parked.text, .max_tokens = parked.text.witness.end() + UpTo(100), .sequence = nullptr};
    if (!cache_->FitsNow(running.max_tokens)) return;
    auto resumed = cache_->Resume(parked.id, running.max_tokens);
    if (resumed.ok()) {
      running.sequence = *std::move(resumed);
      ASSERT_EQ(running.sequence->position(), parked.text.witness.end());
    } else {
      ASSERT_EQ(resumed.status().code(), absl::StatusCode::kNotFound);
      ++lost_;
      BeginAgain(running, parked.text.witness.end());
    }
    parked_.erase(parked_.begin() + static_cast<int64_t>(index));
    running_.push_back(std::move(running));
  }

  // Rule 7: what was lost is read again from where that is exact.
  void BeginAgain(Running& running, int64_t position) {
    const int64_t begin = cache_->RecomputeFrom(position);
    ASSERT_LE(begin, std::max<int64_t>(0, position - info_.layers * (info_.memory_length + info_.segment_length)));
    auto begun = cache_->BeginAt(begin, running.max_tokens);
    ASSERT_TRUE(begun.ok()) << begun.status();
    running.sequence = *std::move(begun);
    running.text.witness = Witness(begin);
    recomputed_ += begin > 0 ? 1 : 0;
  }

  // A parked sequence goes out of the cache and comes in again.
  void Move() {
    if (parked_.empty()) return;
    Parked& parked = parked_[random_() % parked_.size()];
    const absl::StatusOr<ParkedPages> pages = cache_->Export(parked.id);
    if (!pages.ok()) {
      ASSERT_EQ(pages.status().code(), absl::StatusCode::kNotFound);
      return;
    }
    const int64_t position = parked.text.witness.end();
    ASSERT_EQ(pages->position, position);
    std::vector<int32_t> tokens = parked.text.tokens;
    tokens.resize(position + 1);
    const bool fits = cache_->FitsNow(position + 1);
    const absl::StatusOr<ParkedId> imported = cache_->Import(*pages, tokens);
    if (!imported.ok()) {
      const bool exact = cache_->RecomputeFrom(position) >= pages->begin;
      ASSERT_EQ(imported.status().code(), exact ? absl::StatusCode::kUnavailable : absl::StatusCode::kDataLoss);
      ASSERT_FALSE(exact && fits);
      return;
    }
    ++moved_;
    cache_->RemoveParked(std::exchange(parked.id, *imported));
    parked.text.moved = true;
  }

  void SkipRead() {
    if (running_.empty()) return;
    Running& running = running_[random_() % running_.size()];
    const int64_t position = running.sequence->position();
    const int64_t known = std::min(running.max_tokens, static_cast<int64_t>(running.text.tokens.size()));
    const auto skipped = cache_->SkipRead(*running.sequence, running.text.tokens, known - 1);
    ASSERT_TRUE(skipped.ok()) << skipped.status();
    ASSERT_EQ(running.sequence->position(), position + *skipped);
    for (int64_t i = position; i < position + *skipped; ++i) running.text.witness.Append(running.text.tokens[i]);
    skipped_ += *skipped;
  }

  void RollBack() {
    if (running_.empty()) return;
    Running& running = running_[random_() % running_.size()];
    const int64_t position = running.sequence->position();
    const int64_t min = running.text.witness.begin();
    if (position == min) return;
    const int64_t target = std::max(min, position - UpTo(random_() % 2 == 0 ? 10 : 150));
    const absl::StatusOr<int64_t> stands = running.sequence->RollBack(target);
    if (!stands.ok()) {
      ASSERT_EQ(stands.status().code(), absl::StatusCode::kNotFound);
      ASSERT_TRUE(min > 0 || running.text.moved || cache_->RecomputeFrom(target) > 0);
      return;
    }
    ASSERT_LE(*stands, target);
    ASSERT_EQ(*stands, running.sequence->position());
    running.text.witness.CutTo(*stands);
    running.text.tokens.resize(*stands);
    ++rolled_back_;
  }

  void End() {
    if (!running_.empty()) TakeRunning();
  }

  Running TakeRunning() {
    std::swap(running_[random_() % running_.size()], running_.back());
    Running running = std::move(running_.back());
    running_.pop_back();
    return running;
  }

  const models::LanguageModelInfo info_;
  WitnessModel model_;
  const std::unique_ptr<PagedCache> cache_;
  std::mt19937_64 random_;
  std::vector<Running> running_;
  std::vector<Parked> parked_;
  int64_t lost_ = 0;
  int64_t recomputed_ = 0;
  int64_t rolled_back_ = 0;
  int64_t skipped_ = 0;
  int64_t moved_ = 0;
  int64_t read_tokens_ = 0;
};

models::LanguageModelInfo RandomInfo(std::mt19937& random) {
  models::LanguageModelInfo info;
  info.layers = 1;
  info.chunk_size = 1 << random() % 7;
  if (random() % 8 == 0) info.chunk_size = 48;  // divides no page
  info.chunk_rank = random() % 4 == 0 ? random() % 12 + 1 : random() % 3 + 1;
  info.memory_length = info.chunk_size * (random() % 30 + 1);
  info.segment_length = info.chunk_size * (random() % 12 + 1);
  info.rows_per_page = 16 << random() % 3;
  info.window_length = random() % info.memory_length + 1;
  info.vocabulary_size = 32;
  return info;
}

void ExpectNothingIsHeld(const PagedCache& cache) {
  const CacheState state = cache.state();
  EXPECT_EQ(state.in_use.window + state.in_use.segment + state.in_use.open_chunk, 0);
  EXPECT_EQ(state.reserved.window + state.reserved.segment + state.reserved.open_chunk, 0);
  EXPECT_EQ(state.idle.open_chunk, 0);
}

TEST(PagedCacheAtRandom, ShowsEveryQueryTheRowsOfItsHistoryAndLosesNoPage) {
  constexpr int kRounds = 200;
  constexpr int kEvents = 5000;
  std::mt19937 random(5);
  CacheCounters sum;
  int64_t lost = 0, recomputed = 0, rolled_back = 0, skipped = 0, moved = 0, read = 0, rows = 0;
  for (int round = 0; round < kRounds; ++round) {
    const models::LanguageModelInfo info = RandomInfo(random);
    SCOPED_TRACE(testing::Message() << "round " << round << ": C " << info.chunk_size << " R " << info.chunk_rank
                                    << " W " << info.window_length << " M " << info.memory_length << " L "
                                    << info.segment_length);
    const models::CachePages full = CacheGrid(info).PagesForSequence();
    models::CachePages capacity = full * static_cast<int64_t>(random() % 6 + 1);
    capacity = capacity + models::CachePages{.window = static_cast<int64_t>(random() % 60),
                                             .segment = static_cast<int64_t>(random() % 60),
                                             .open_chunk = static_cast<int64_t>(random() % 6)};
    RandomEvents events(info, capacity, random());
    for (int event = 0; event < kEvents; ++event) {
      events.Happen();
      if (event % 50 == 0) {
        ASSERT_TRUE(events.cache().CheckInvariants().ok()) << events.cache().CheckInvariants() << " at event " << event;
      }
      if (testing::Test::HasFatalFailure()) FAIL() << "event " << event;
    }
    events.EndAll();
    ASSERT_TRUE(events.cache().CheckInvariants().ok()) << events.cache().CheckInvariants();
    ExpectNothingIsHeld(events.cache());
    const CacheCounters counters = events.cache().state().counters;
    sum.hits += counters.hits;
    sum.misses += counters.misses;
    sum.reused_tokens += counters.reused_tokens;
    sum.resumed += counters.resumed;
    sum.copied_pages += counters.copied_pages;
    sum.evicted_parked += counters.evicted_parked;
    sum.evicted_ends += counters.evicted_ends;
    sum.evicted_window += counters.evicted_window;
    sum.evicted_segment += counters.evicted_segment;
    lost += events.lost();
    recomputed += events.recomputed();
    rolled_back += events.rolled_back();
    skipped += events.skipped();
    moved += events.moved();
    read += events.read_tokens();
    rows += events.model().checked_rows();
  }
  std::cout << kRounds * kEvents << " events: " << read << " tokens read, " << rows << " rows checked, " << sum.hits
            << " hits (" << sum.reused_tokens << " tokens) and " << sum.misses << " misses, " << sum.resumed
            << " resumed, " << lost << " found gone (" << recomputed << " recomputed from their middle), "
            << rolled_back << " rolled back, " << skipped << " tokens skipped, " << moved << " moved, "
            << sum.copied_pages << " pages copied; evicted " << sum.evicted_window << " window and "
            << sum.evicted_segment << " segment pages, " << sum.evicted_ends << " ends, " << sum.evicted_parked
            << " parked sequences\n";
  for (const int64_t count : {sum.hits, sum.misses, sum.resumed, sum.copied_pages, sum.evicted_parked, sum.evicted_ends,
                              sum.evicted_window, sum.evicted_segment, lost, recomputed, rolled_back, moved}) {
    EXPECT_GT(count, 100);
  }
}

}  // namespace longshort::core::paged_cache_random_test
