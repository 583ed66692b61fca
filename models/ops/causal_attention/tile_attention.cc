#include <immintrin.h>

#include <cstdint>

#include "models/ops/causal_attention/causal_attention_kernels.h"

#define LONGSHORT_INSTRUCTION_SET amx
#include "models/ops/causal_attention/causal_attention_pages_body.h"

namespace longshort::models::cpu {
namespace {

using amx::FloorDivide;
using amx::Max;
using amx::Min;
using amx::Range;

constexpr int64_t kGroups = kBlock / kTileRows;
// Pages whose keys are folded together.
constexpr int64_t kFoldedPages = 16, kFoldedKeys = kFoldedPages * kPageRows;
constexpr int64_t kDistanceColumns = kFoldedKeys + kTileSpread;
// Elements of a tile, and channels or keys of its rows.
constexpr int64_t kTileElements = 512, kTileDepth = 32;
constexpr float kHidden = -1e30f;
constexpr float kLog2E = 1.44269504088896341f;

static_assert(kTileRows == kPageRows, "a page's keys fill a tile");

// The compiler must not move other accesses of memory across these.
template <int kTile>
LS_INLINE void LoadTile(const void* from, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "i"(kTile) : "memory");
}
template <int kTile>
LS_INLINE void StoreTile(void* to, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "i"(kTile) : "memory");
}
template <int kTile>
LS_INLINE void ClearTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
// Tile kTo += left [16 rows][32] * right [32 / 2][16 columns][2].
template <int kTo, int kLeft, int kRight>
LS_INLINE void MultiplyTiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kTo), "i"(kLeft), "i"(kRight));
}

// All eight tiles have 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

class UsedTiles {
 public:
  UsedTiles() {
    const TileConfig config;
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~UsedTiles() { asm volatile("tilerelease" ::); }
  UsedTiles(const UsedTiles&) = delete;
  UsedTiles& operator=(const UsedTiles&) = delete;
};

// Calls work<tile>() for each of the first kCount tiles.
template <int kCount, typename Work>
LS_INLINE void ForTiles(const Work& work) {
  work.template operator()<0>();
  if constexpr (kCount > 1) work.template operator()<1>();
  if constexpr (kCount > 2) work.template operator()<2>();
  if constexpr (kCount > 3) work.template operator()<3>();
}

// 2^x, to 3e-6 of it; 0 far below.
LS_INLINE __m512 PowerOf2(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = x - whole;
  __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(0.00958285f), _mm512_set1_ps(0.05590642f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.24024099f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.69312419f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, whole);
}

LS_INLINE __m512 Larger(__m512 a, __m512 b) { return a > b ? a : b; }

// A page that some query of the run meets.
struct MetPage {
  const BFloat16* keys = nullptr;
  const BFloat16* values = nullptr;
  int64_t first = 0;  // its first key's place on the grid
  Range met;          // the range of keys that at least one query sees
};

// Consecutive pages that are folded together, and their values in pairs of keys: [tiles of keys][tiles of channels] of
// [16 pairs][16 channels][2].
struct Fold {
  MetPage pages[kFoldedPages];
  int64_t count = 0;
  BFloat16* values = nullptr;
  const DistanceTable<BFloat16>* distances = nullptr;
  const BFloat16* table = nullptr;  // the head's
};

// A group's queries of one head. Rows of the group that are not in the run hold zeros.
struct Group {
  const BFloat16* content = nullptr;   // [16][head_width]: for keys
  const BFloat16* distance = nullptr;  // for positions
  Range seen[kTileRows];               // places on the grid
  int64_t shifts[kTileRows];           // from a key's place to its distance's column
  int64_t base = 0;                    // the smallest shift
  bool one_shift = false;
  float* mixed = nullptr;  // [16][head_width]
  float* maximum = nullptr;
  float* sum = nullptr;  // [16]
};

// Memory for one fold of a group.
struct Buffers {
  float* scores = nullptr;            // [16][kFoldedKeys]
  float* distances = nullptr;         // [16][kDistanceColumns]
  BFloat16* probabilities = nullptr;  // [16][kFoldedKeys]
};

// Multiplies queries by kCount tiles of 16 columns, adding to tiles 0 .. kCount-1. Column tile i begins at columns[i];
// its rows of pairs of channels are `stride` elements apart.
template <int kCount>
LS_INLINE void AddScores(int64_t head_width, const BFloat16* queries, const BFloat16* const* columns, int64_t stride) {
  for (int64_t c = 0; c < head_width; c += kTileDepth) {
    LoadTile<4>(queries + c, head_width * 2);
    ForTiles<kCount>([&]<int kTile>() {
      constexpr int kRight = 5 + kTile % 3;
      LoadTile<kRight>(columns[kTile] + c / 2 * stride, stride * 2);
      MultiplyTiles<kTile, 4, kRight>();
    });
  }
}

const BFloat16* DistanceColumns(const Fold& fold, int64_t column) {
  // Columns outside the table are of keys that no query sees.
  return fold.table + 2 * Min(Max(column, 0), fold.distances->stride() - kTileRows);
}

template <int kCount>
void ContentScores(int64_t head_width, const Fold& fold, int64_t page, const Group& group, float* scores) {
  const BFloat16 *keys[kCount], *distances[kCount];
  for (int i = 0; i < kCount; ++i) {
    keys[i] = fold.pages[page + i].keys;
    distances[i] = DistanceColumns(fold, fold.pages[page + i].first + group.base);
  }
  ForTiles<kCount>([]<int kTile>() { ClearTile<kTile>(); });
  AddScores<kCount>(head_width, group.content, keys, 2 * kPageRows);
  if (group.one_shift) AddScores<kCount>(head_width, group.distance, distances, 2 * fold.distances->stride());
  ForTiles<kCount>(
      [&]<int kTile>() { StoreTile<kTile>(scores + (page + kTile) * kPageRows, kFoldedKeys * sizeof(float)); });
}

template <int kCount>
void DistanceScores(int64_t head_width, const Fold& fold, int64_t tile, const Group& group, float* scores) {
  const BFloat16* distances[kCount];
  for (int i = 0; i < kCount; ++i) {
    distances[i] = DistanceColumns(fold, fold.pages[0].first + group.base + (tile + i) * kTileRows);
  }
  ForTiles<kCount>([]<int kTile>() { ClearTile<kTile>(); });
  AddScores<kCount>(head_width, group.distance, distances, 2 * fold.distances->stride());
  ForTiles<kCount>(
      [&]<int kTile>() { StoreTile<kTile>(scores + (tile + kTile) * kTileRows, kDistanceColumns * sizeof(float)); });
}

// Calls work<4>(i) for each four of `count` numbers, then work<1>(i) for the others.
template <typename Work>
LS_INLINE void ByFours(int64_t count, const Work& work) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) work.template operator()<4>(i);
  for (; i < count; ++i) work.template operator()<1>(i);
}

// The lanes of a page that the group's query sees.
LS_INLINE __mmask16 SeenLanes(const MetPage& page, const Range& seen) {
  const int64_t begin = Min(Max(Max(page.met.begin, seen.begin) - page.first, 0), kPageRows);
  const int64_t end = Max(Min(Min(page.met.end, seen.end) - page.first, kPageRows), begin);
  return static_cast<__mmask16>((1u << end) - (1u << begin));
}

// Turns the scores into probabilities relative to each query's new maximum. Rescales sums and mixed values.
void FoldScores(int64_t head_width, const Fold& fold, const Group& group, const Buffers& buffers) {
  bool all_seen[kFoldedPages];
  for (int64_t v = 0; v < fold.count; ++v) {
    all_seen[v] = true;
    for (const Range& seen : group.seen) all_seen[v] = all_seen[v] && SeenLanes(fold.pages[v], seen) == 0xffff;
  }
  float highest[kTileRows];
  for (int64_t q = 0; q < kTileRows; ++q) {
    float* const scores = buffers.scores + q * kFoldedKeys;
    const float* const distances = buffers.distances + q * kDistanceColumns + group.shifts[q] - group.base;
    __m512 most = _mm512_set1_ps(kHidden);
    for (int64_t v = 0; v < fold.count; ++v) {
      __m512 score = _mm512_load_ps(scores + v * kPageRows);
      if (!group.one_shift) score += _mm512_loadu_ps(distances + v * kPageRows);
      if (!all_seen[v]) {
        score = _mm512_mask_mov_ps(_mm512_set1_ps(kHidden), SeenLanes(fold.pages[v], group.seen[q]), score);
      }
      _mm512_store_ps(scores + v * kPageRows, score);
      most = Larger(most, score);
    }
    highest[q] = _mm512_reduce_max_ps(most);
  }
  const __m512 before = _mm512_loadu_ps(group.maximum), maximum = Larger(before, _mm512_loadu_ps(highest));
  const __m512 rescale = PowerOf2((before - maximum) * kLog2E);
  alignas(64) float factors[kTileRows], starts[kTileRows];
  _mm512_store_ps(factors, rescale);
  _mm512_store_ps(starts, maximum * -kLog2E);
  _mm512_storeu_ps(group.maximum, maximum);
  for (int64_t q = 0; q < kTileRows; ++q) {
    const float* const scores = buffers.scores + q * kFoldedKeys;
    BFloat16* const probabilities = buffers.probabilities + q * kFoldedKeys;
    const __m512 start = _mm512_set1_ps(starts[q]), scale = _mm512_set1_ps(kLog2E);
    __m512 total = _mm512_setzero_ps();
    int64_t v = 0;
    for (; v + 2 <= fold.count; v += 2) {
      const __m512 first = PowerOf2(_mm512_fmadd_ps(_mm512_load_ps(scores + v * kPageRows), scale, start));
      const __m512 second = PowerOf2(_mm512_fmadd_ps(_mm512_load_ps(scores + (v + 1) * kPageRows), scale, start));
      total += first + second;
      const __m512bh both = _mm512_cvtne2ps_pbh(second, first);
      _mm512_storeu_si512(probabilities + v * kPageRows, reinterpret_cast<const __m512i&>(both));
    }
    if (v < fold.count) {
      const __m512 last = PowerOf2(_mm512_fmadd_ps(_mm512_load_ps(scores + v * kPageRows), scale, start));
      total += last;
      const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_setzero_ps(), last);
      _mm512_storeu_si512(probabilities + v * kPageRows, reinterpret_cast<const __m512i&>(both));
    }
    group.sum[q] = group.sum[q] * factors[q] + _mm512_reduce_add_ps(total);
    float* const mixed = group.mixed + q * head_width;
    for (int64_t c = 0; c < head_width; c += 16) {
      _mm512_storeu_ps(mixed + c, _mm512_loadu_ps(mixed + c) * _mm512_set1_ps(factors[q]));
    }
  }
}

// Adds the probabilities times the values, for kCount tiles of channels.
template <int kCount>
void MixValues(int64_t head_width, const Fold& fold, int64_t channel_tile, const Group& group, const Buffers& buffers) {
  float* const mixed = group.mixed + channel_tile * kTileRows;
  ForTiles<kCount>([&]<int kTile>() { LoadTile<kTile>(mixed + kTile * kTileRows, head_width * sizeof(float)); });
  const BFloat16* values = fold.values + channel_tile * kTileElements;
  for (int64_t key = 0; key < fold.count * kPageRows; key += kTileDepth) {
    LoadTile<4>(buffers.probabilities + key, kFoldedKeys * 2);
    ForTiles<kCount>([&]<int kTile>() {
      constexpr int kRight = 5 + kTile % 3;
      LoadTile<kRight>(values + kTile * kTileElements, 64);
      MultiplyTiles<kTile, 4, kRight>();
    });
    values += head_width / kTileRows * kTileElements;
  }
  ForTiles<kCount>([&]<int kTile>() { StoreTile<kTile>(mixed + kTile * kTileRows, head_width * sizeof(float)); });
}

void FoldGroup(int64_t head_width, const Fold& fold, const Group& group, const Buffers& buffers) {
  ByFours(fold.count,
          [&]<int kCount>(int64_t page) { ContentScores<kCount>(head_width, fold, page, group, buffers.scores); });
  if (!group.one_shift) {
    int64_t spread = 0;
    for (const int64_t shift : group.shifts) spread = Max(spread, shift - group.base);
    ByFours(fold.count + (spread + kTileRows - 1) / kTileRows, [&]<int kCount>(int64_t tile) {
      DistanceScores<kCount>(head_width, fold, tile, group, buffers.distances);
    });
  }
  FoldScores(head_width, fold, group, buffers);
  ByFours(head_width / kTileRows,
          [&]<int kCount>(int64_t tile) { MixValues<kCount>(head_width, fold, tile, group, buffers); });
}

// Writes the values of the fold's pages in pairs of keys, 0 for keys that no query meets.
void PairValues(int64_t head_width, const Fold& fold) {
  const int64_t tile_row = head_width / kTileRows * kTileElements;
  for (int64_t v = 0; v < fold.count; ++v) {
    const MetPage& page = fold.pages[v];
    for (int64_t row = 0; row < kPageRows; row += 2) {
      const int64_t key = page.first + row, pair = (v * kPageRows + row) / 2;
      const auto words = [&](int64_t k, int64_t channel) {
        const bool met = key + k >= page.met.begin && key + k < page.met.end;
        return met ? _mm512_loadu_si512(page.values + (row + k) * head_width + channel) : _mm512_setzero_si512();
      };
      BFloat16* const to = fold.values + pair / kTileRows * tile_row + pair % kTileRows * kTileDepth;
      for (int64_t channel = 0; channel < head_width; channel += 2 * kTileRows) {
        const __m512i first = words(0, channel), second = words(1, channel);
        const __m512i low = _mm512_mask_mov_epi16(_mm512_slli_epi32(second, 16), 0x55555555, first);
        const __m512i high = _mm512_mask_mov_epi16(_mm512_srli_epi32(first, 16), 0xaaaaaaaa, second);
        _mm512_store_si512(to + channel / kTileRows * kTileElements, low);
        _mm512_store_si512(to + (channel / kTileRows + 1) * kTileElements, high);
      }
    }
  }
  if (fold.count % 2 == 1) {
    BFloat16* const to = fold.values + fold.count / 2 * tile_row + kTileElements / 2;
    for (int64_t tile = 0; tile < head_width / kTileRows; ++tile) {
      for (int64_t i = 0; i < kTileElements / 2; ++i) to[tile * kTileElements + i] = BFloat16{};
    }
  }
}

template <typename T>
T* Take(float*& scratch, int64_t count) {
  T* const taken = reinterpret_cast<T*>(scratch);
  scratch += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 16;
  return taken;
}

// One head of the run.
class HeadTiles {
 public:
  HeadTiles(const AttentionRun<BFloat16>& run, int64_t head) : run_(run), width_(run.head_width), head_(head) {
    float* scratch = run.scratch + (-reinterpret_cast<intptr_t>(run.scratch) & 63) / 4;
    first_group_ = run.position / kTileRows * kTileRows;
    groups_ = (run.position + run.count - 1) / kTileRows - first_group_ / kTileRows + 1;
    fold_.values = Take<BFloat16>(scratch, kFoldedKeys * width_);
    buffers_ = {.scores = Take<float>(scratch, kTileRows * kFoldedKeys),
                .distances = Take<float>(scratch, kTileRows * kDistanceColumns),
                .probabilities = Take<BFloat16>(scratch, kTileRows * kFoldedKeys)};
    for (int64_t g = 0; g < groups_; ++g) {
      content_[g] = Take<BFloat16>(scratch, kTileRows * width_);
      distance_[g] = Take<BFloat16>(scratch, kTileRows * width_);
      group_[g] = {.content = content_[g],
                   .distance = content_[g],
                   .seen = {},
                   .shifts = {},
                   .mixed = Take<float>(scratch, kTileRows * width_),
                   .maximum = Take<float>(scratch, kTileRows),
                   .sum = Take<float>(scratch, kTileRows)};
      for (int64_t i = 0; i < kTileRows * width_; ++i) group_[g].mixed[i] = 0.0f;
      for (int64_t q = 0; q < kTileRows; ++q) {
        group_[g].maximum[q] = kHidden;
        group_[g].sum[q] = 0.0f;
      }
    }
  }

  void Attend() {
    for (int64_t g = 0; g < groups_; ++g) RoundQueries(g, nullptr, content_[g]);
    SeeVectors();
    const int64_t last = run_.position + run_.count - 1;
    BeginKeys(run_.chunk_distances);
    Meet(run_.memory, run_.first_vector, {run_.first_vector, run_.segment_vector});
    Meet(run_.segment, run_.segment_vector, {run_.segment_vector, last / run_.chunk_size * run_.chunk_rank});
    FoldPages();

    for (int64_t g = 0; g < groups_; ++g) {
      RoundQueries(g, run_.window_bias + head_ * width_, content_[g]);
      RoundQueries(g, run_.relative_bias + head_ * width_, distance_[g]);
      group_[g].distance = distance_[g];
    }
    SeeWindow();
    BeginKeys(run_.window_distances);
    const int64_t before_window = 1 - run_.window_length;
    Meet(run_.window, run_.position / kBlock * kBlock + before_window, {run_.position + before_window, last + 1});
    FoldPages();
    Write();
  }

 private:
  // The group's queries plus a bias, if there is one, rounded.
  void RoundQueries(int64_t g, const float* bias, BFloat16* to) const {
    for (int64_t q = 0; q < kTileRows; ++q, to += width_) {
      const int64_t i = first_group_ + g * kTileRows + q - run_.position;
      if (i < 0 || i >= run_.count) {
        for (int64_t c = 0; c < width_; ++c) to[c] = BFloat16{};
        continue;
      }
      const float* const query = run_.queries + i * run_.stride + head_ * width_;
      for (int64_t c = 0; c < width_; c += 16) {
        __m512 x = _mm512_loadu_ps(query + c);
        if (bias != nullptr) x += _mm512_loadu_ps(bias + c);
        const __m256bh rounded = _mm512_cvtneps_pbh(x);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + c), reinterpret_cast<const __m256i&>(rounded));
      }
    }
  }

  void SeeVectors() {
    for (int64_t g = 0; g < groups_; ++g) {
      for (int64_t q = 0; q < kTileRows; ++q) {
        const int64_t own_vector = (first_group_ + g * kTileRows + q) / run_.chunk_size * run_.chunk_rank;
        group_[g].seen[q] = {run_.first_vector, own_vector};
        group_[g].shifts[q] = kBlock + run_.chunk_distances.count - own_vector;
      }
      FindBase(group_[g]);
    }
  }
  void SeeWindow() {
    for (int64_t g = 0; g < groups_; ++g) {
      for (int64_t q = 0; q < kTileRows; ++q) {
        const int64_t position = first_group_ + g * kTileRows + q;
        group_[g].seen[q] = {position - run_.window_length + 1, position + 1};
        group_[g].shifts[q] = kBlock + run_.window_distances.count - 1 - position;
      }
      FindBase(group_[g]);
    }
  }
  // Shifts do not grow from one query to the next.
  static void FindBase(Group& group) {
    group.base = group.shifts[kTileRows - 1];
    group.one_shift = group.shifts[0] == group.base;
  }

  void BeginKeys(const DistanceTable<BFloat16>& distances) {
    fold_.distances = &distances;
    fold_.table = distances.table + head_ * width_ * distances.stride();
  }
  // Adds the pages of keys `met`, and folds whenever they are enough. The first page is that of key `first_key`, which
  // must not depend on the other queries of the run.
  void Meet(const KeyPages<BFloat16>& pages, int64_t first_key, const Range& met) {
    if (met.begin >= met.end) return;
    for (int64_t page = FloorDivide(first_key, kPageRows); page * kPageRows < met.end; ++page) {
      const int64_t first = page * kPageRows;
      const bool follows = fold_.count > 0 && fold_.pages[fold_.count - 1].first + kPageRows == first;
      if (fold_.count == kFoldedPages || !follows) FoldPages();
      const amx::HeadPage<BFloat16> found = amx::FindPage(pages, page);
      fold_.pages[fold_.count++] = {.keys = found.keys + head_ * pages.head_elements,
                                    .values = found.values + head_ * pages.head_elements,
                                    .first = first,
                                    .met = met};
    }
  }
  void FoldPages() {
    if (fold_.count == 0) return;
    PairValues(width_, fold_);
    for (int64_t g = 0; g < groups_; ++g) FoldGroup(width_, fold_, group_[g], buffers_);
    fold_.count = 0;
  }

  void Write() const {
    for (int64_t i = 0; i < run_.count; ++i) {
      const int64_t place = run_.position + i - first_group_, q = place % kTileRows;
      const Group& group = group_[place / kTileRows];
      float* const output = run_.output + i * run_.stride + head_ * width_;
      const __m512 scale = _mm512_set1_ps(1.0f / group.sum[q]);
      for (int64_t c = 0; c < width_; c += 16) {
        _mm512_storeu_ps(output + c, _mm512_loadu_ps(group.mixed + q * width_ + c) * scale);
      }
    }
  }

  const AttentionRun<BFloat16>& run_;
  const int64_t width_, head_;
  int64_t first_group_ = 0;  // its first position
  int64_t groups_ = 0;
  Fold fold_;
  Buffers buffers_;
  Group group_[kGroups];
  BFloat16 *content_[kGroups], *distance_[kGroups];
};

}  // namespace

int64_t TileScratchFloats(int64_t head_width) {
  const int64_t bytes_per_group = kTileRows * head_width * 8 + 2 * kTileRows * 4;
  const int64_t bytes = kFoldedKeys * head_width * 2 + kTileRows * (kFoldedKeys * 6 + kDistanceColumns * 4) +
                        kGroups * bytes_per_group + 64;
  return bytes / 4;
}

void AttendByTiles(const AttentionRun<BFloat16>& run) {
  const UsedTiles tiles;
  for (int64_t head = 0; head < run.heads; ++head) HeadTiles(run, head).Attend();
}

}  // namespace longshort::models::cpu
