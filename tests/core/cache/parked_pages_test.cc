// Sequences that go from one cache to another.

#include <functional>
#include <string>
#include <utility>

#include "core/cache/cache_grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/cache/cache_harness.h"

namespace longshort::core::parked_pages_test {

using testing::HasSubstr;

const models::CachePages kOneSequence = CacheGrid(DrawnInfo()).PagesForSequence();

// A parked sequence that has read the first `position` tokens of `text`.
ParkedId ParkedAt(CacheHarness& harness, const Tokens& text, int64_t position) {
  auto sequence = harness.Begin(text, 1000);
  harness.Read(*sequence, text, position);
  return harness.cache->Park(std::move(sequence));
}

TEST(ParkedPages, ASequenceGoesOnInAnotherCacheWithoutReadingAnythingAgain) {
  for (const int64_t position : {1, 15, 16, 64, 100, 128, 333, 384, 960}) {
    CacheHarness here(kPlenty), there(kPlenty);
    const Tokens text = Text(1100, 1);
    const auto pages = here.cache->Export(ParkedAt(here, text, position));
    ASSERT_TRUE(pages.ok()) << pages.status();
    there.ReadAndEnd(Text(500, 2));  // so that its pages have other numbers, and held other rows
    const auto id = there.cache->Import(*pages, absl::MakeConstSpan(text).first(position + 1));
    ASSERT_TRUE(id.ok()) << id.status();
    ASSERT_TRUE(there.cache->CheckInvariants().ok()) << there.cache->CheckInvariants();
    const auto sequence = there.cache->Resume(*id, 1100);
    ASSERT_TRUE(sequence.ok()) << sequence.status();
    EXPECT_EQ((*sequence)->position(), position);
    there.Read(**sequence, text);
    EXPECT_EQ(there.cache->state().counters.imported, 1);
  }
}

TEST(ParkedPages, ASequenceReadFromItsMiddleGoesOnToo) {
  CacheHarness here(kPlenty), there(kPlenty);
  const Tokens text = Text(3000, 1);
  const int64_t begin = here.cache->RecomputeFrom(2500);
  ASSERT_EQ(begin, 1024);  // a page of vectors is 1024 tokens
  auto sequence = *here.cache->BeginAt(begin, 3000);
  here.Read(*sequence, text, 2500, begin);
  const auto pages = here.cache->Export(here.cache->Park(std::move(sequence)));
  ASSERT_TRUE(pages.ok());
  const auto id = there.cache->Import(*pages, absl::MakeConstSpan(text).first(2501));
  ASSERT_TRUE(id.ok()) << id.status();
  there.Read(**there.cache->Resume(*id, 3000), text, 3000, begin);
}

TEST(ParkedPages, TheExportedSequenceStaysAndPagesSharedWithOthersGoAlong) {
  CacheHarness here(kPlenty), there(kPlenty);
  const Tokens text = Text(600, 1);
  const ParkedId id = ParkedAt(here, text, 333);
  const auto sharer = here.Begin(text);
  ASSERT_EQ(sharer->reused_tokens(), 320);
  const auto pages = here.cache->Export(id);
  ASSERT_TRUE(pages.ok());
  here.Read(*sharer, text);
  here.Read(**here.cache->Resume(id, 600), text);
  const auto imported = there.cache->Import(*pages, absl::MakeConstSpan(text).first(334));
  ASSERT_TRUE(imported.ok());
  there.Read(**there.cache->Resume(*imported, 600), text);
}

TEST(ParkedPages, ASequenceWhosePagesWereEvictedCannotBeExported) {
  CacheHarness harness(kOneSequence);
  const ParkedId id = ParkedAt(harness, Text(300, 1), 290);
  harness.ReadAndEnd(Text(600, 2));
  EXPECT_EQ(harness.cache->Export(id).status(), absl::NotFoundError("the parked sequence was evicted"));
}

TEST(ParkedPages, NewSequencesTakeIdlePagesButNeverReservedOnes) {
  CacheHarness here(kPlenty);
  const Tokens text = Text(600, 1);
  const ParkedPages pages = *here.cache->Export(ParkedAt(here, text, 500));
  CacheHarness there(kOneSequence);
  there.ReadAndEnd(Text(700, 2));
  const auto first = there.cache->Import(pages, absl::MakeConstSpan(text).first(501));
  ASSERT_TRUE(first.ok()) << first.status();
  {
    const auto running = there.Begin(Text(10, 3), 10000);
    const auto refused = there.cache->Import(pages, absl::MakeConstSpan(text).first(501));
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
    const Tokens other = Text(700, 3);
    there.Read(*running, other);  // has all that it was promised
  }
  EXPECT_FALSE(there.cache->IsParked(*first));
  EXPECT_TRUE(there.cache->CheckInvariants().ok()) << there.cache->CheckInvariants();
}

TEST(ParkedPages, WhatCannotBeIsRefusedAndChangesNothing) {
  CacheHarness here(kPlenty), there(kPlenty);
  const Tokens text = Text(600, 1);
  const ParkedPages right = *here.cache->Export(ParkedAt(here, text, 333));
  const auto refused = [&](int64_t tokens, const std::function<void(ParkedPages&)>& spoil) {
    ParkedPages pages = right;
    spoil(pages);
    const absl::Status status = there.cache->Import(pages, absl::MakeConstSpan(text).first(tokens)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refused(333, [](ParkedPages&) {}), "the session has 333 tokens, its cache has read 333");
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.position = -1; }), HasSubstr("has read -1"));
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.position = 400; }), HasSubstr("it must have"));
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.begin = 64; }),
              HasSubstr("at token 64, which is not exact at position 333"));
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.begin = -1024; }), HasSubstr("not exact"));
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.contents.pop_back(); }), HasSubstr("it must have"));
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.contents += 'x'; }), HasSubstr("it must have"));
  EXPECT_THAT(refused(500, [](ParkedPages& pages) { pages.contents.clear(); }), HasSubstr("has 0 bytes"));
  const CacheState state = there.cache->state();
  EXPECT_EQ(state.parked_sequences, 0);
  EXPECT_EQ(state.free.window, kPlenty.window);
  EXPECT_EQ(state.free.segment, kPlenty.segment);
  EXPECT_EQ(state.free.open_chunk, kPlenty.open_chunk);
}

}  // namespace longshort::core::parked_pages_test
