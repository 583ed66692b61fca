// The pages of streams that run without a cache (core/cache): every row keeps a page of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/cache/cache_grid.h"
#include "models/model.h"

namespace longshort::core {

// Pages of each kind that no stream has yet. They are handed out from the end, so a test may shuffle them.
struct FreePages {
  // Pages `before` .. `before` + `count` - 1.
  explicit FreePages(const models::CachePages& count, const models::CachePages& before = {})
      : window(Numbers(count.window, before.window)),
        segment(Numbers(count.segment, before.segment)),
        open_chunk(Numbers(count.open_chunk, before.open_chunk)) {}

  std::vector<models::PageId> window;
  std::vector<models::PageId> segment;
  std::vector<models::PageId> open_chunk;

 private:
  static std::vector<models::PageId> Numbers(int64_t count, int64_t first) {
    std::vector<models::PageId> numbers(count);
    std::iota(numbers.begin(), numbers.end(), static_cast<models::PageId>(first));
    return numbers;
  }
};

class StreamPages final {
 public:
  // What a stream of `tokens` tokens needs.
  static models::CachePages Needed(const models::LanguageModelInfo& info, int64_t tokens) {
    const CacheGrid grid(info);
    const auto pages = [&](Strip strip) { return grid.Pages(strip, 0, tokens).end; };
    return {.window = pages(kWindowStrip), .segment = pages(kMemoryStrip) + pages(kSegmentStrip), .open_chunk = 1};
  }

  // Takes the Needed pages out of `free`, which must have them.
  StreamPages(const models::LanguageModelInfo& info, int64_t tokens, FreePages& free)
      : grid_(info),
        window_length_(info.window_length),
        memory_length_(info.memory_length),
        open_chunk_(Take(free.open_chunk, 1).front()) {
    for (const Strip strip : kStrips) {
      pages_[strip] = Take(strip == kWindowStrip ? free.window : free.segment, grid_.Pages(strip, 0, tokens).end);
    }
  }

  // Fills in the page ranges and the open chunk of a slice from its tokens.size(), position and segment_start. The
  // ranges stay valid until the next call.
  void FillIn(models::Slice& slice) {
    const int64_t end = slice.position + static_cast<int64_t>(slice.tokens.size());
    slice.window_pages = Range(kWindowStrip, slice.position - window_length_ + 1, end);
    slice.memory_pages = Range(kMemoryStrip, slice.segment_start - memory_length_, end);
    slice.segment_pages = Range(kSegmentStrip, slice.segment_start, end);
    slice.open_chunk = open_chunk_;
  }

 private:
  static std::vector<models::PageId> Take(std::vector<models::PageId>& free, int64_t count) {
    std::vector<models::PageId> taken(free.end() - count, free.end());
    free.resize(free.size() - count);
    return taken;
  }

  models::PageRange Range(Strip strip, int64_t from, int64_t to) {
    const PageSpan span = grid_.Pages(strip, from, to);
    std::vector<models::PageId>& range = ranges_[strip];
    range.assign(std::max<int64_t>(0, std::min<int64_t>(0, span.end) - span.first), models::kZeroPage);
    for (int64_t page = std::max<int64_t>(0, span.first); page < span.end; ++page) range.push_back(pages_[strip][page]);
    return {.first = span.first, .ids = range};
  }

  CacheGrid grid_;
  int64_t window_length_;
  int64_t memory_length_;
  models::PageId open_chunk_;
  std::array<std::vector<models::PageId>, kStrips.size()> pages_;
  std::array<std::vector<models::PageId>, kStrips.size()> ranges_;
};

}  // namespace longshort::core
