#include "models/ops/causal_attention/causal_attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/products/packed_matrix.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::cpu::causal_attention_kernels_test {

float Widen(float value) { return value; }
float Widen(BFloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// A random problem: one head, some queries, pages in random order, garbage in unwritten rows.
template <typename Element>
class Problem {
 public:
  Problem(int64_t heads, int64_t head_width, int64_t window, int64_t chunk, int64_t rank, int64_t memory,
          int64_t position, int64_t count, uint64_t seed)
      : random_(seed) {
    run_.heads = heads;
    run_.head_width = head_width;
    run_.window_length = window;
    run_.chunk_size = chunk;
    run_.chunk_rank = rank;
    run_.stride = heads * head_width + 3;
    run_.count = count;
    run_.position = position;
    const int64_t segment_start = position / (4 * chunk) * 4 * chunk;
    run_.segment_vector = segment_start / chunk * rank;
    run_.first_vector = run_.segment_vector - memory / chunk * rank;

    queries_ = Floats(run_.stride * count);
    output_.assign(run_.stride * count, 0.0f);
    window_bias_ = Floats(heads * head_width);
    relative_bias_ = Floats(heads * head_width);
    scratch_.resize(AttentionScratchFloats(head_width, heads));
    run_.queries = queries_.data();
    run_.output = output_.data();
    run_.window_bias = window_bias_.data();
    run_.relative_bias = relative_bias_.data();
    run_.scratch = scratch_.data();

    const int64_t last = position + count - 1;
    run_.window_distances = Table(window_table_, window);
    run_.chunk_distances = Table(chunk_table_, std::max<int64_t>(1, last / chunk * rank - run_.first_vector));
    run_.memory = Pages(memory_ids_, run_.first_vector, run_.segment_vector);
    run_.segment = Pages(segment_ids_, run_.segment_vector, last / chunk * rank);
    run_.window = Pages(window_ids_, position - window + 1, position + 1 + count);
  }

  // Largest difference between the kernel and sums in double precision.
  double Error(InstructionSet set) {
    PlacePages();
    Attend(run_, set);
    return ErrorOfOutput();
  }
  void PlacePages() {
    for (KeyPages<Element>* const pages : {&run_.memory, &run_.segment, &run_.window}) {
      pages->pages = pages_.data();
      pages->zero_page = zero_page_.data();
      pages->page_elements = PageElements();
      pages->key_offset = 0;
      pages->value_offset = EvenHeadWidth(run_.head_width) * kPageRows;
      pages->head_elements = HeadElements();
    }
  }
  double ErrorOfOutput() const {
    double largest = 0;
    for (int64_t i = 0; i < run_.count * run_.heads; ++i) {
      const int64_t query = i / run_.heads, head = i % run_.heads;
      const std::vector<double> expected = Expected(query, head);
      for (int64_t c = 0; c < run_.head_width; ++c) {
        const double difference = std::abs(expected[c] - output_[query * run_.stride + head * run_.head_width + c]);
        largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
      }
    }
    return largest;
  }
  const std::vector<float>& output() const { return output_; }
  AttentionRun<Element>& run() { return run_; }

 private:
  int64_t HeadElements() const {
    return (EvenHeadWidth(run_.head_width) + PaddedHeadWidth(run_.head_width)) * kPageRows;
  }
  int64_t PageElements() const { return run_.heads * HeadElements(); }

  std::vector<float> Floats(int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> floats(count);
    for (float& value : floats) value = normal(random_);
    return floats;
  }
  std::vector<Element> Elements(int64_t count) {
    std::vector<Element> elements(count);
    const std::vector<float> floats = Floats(count);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<Element, float>) {
        elements[i] = floats[i];
      } else {
        uint32_t bits;
        std::memcpy(&bits, &floats[i], sizeof(bits));
        elements[i].bits = static_cast<uint16_t>(bits >> 16);
      }
    }
    return elements;
  }

  DistanceTable<Element> Table(std::vector<Element>& storage, int64_t count) {
    const int64_t stride = count + 2 * kBlock;
    const int64_t width = run_.head_width, head_elements = EvenHeadWidth(width) * stride;
    storage.assign(run_.heads * head_elements, Element{});
    for (int64_t c = 0; c < run_.heads * width; ++c) {
      const std::vector<Element> row = Elements(count);
      Element* const table = storage.data() + c / width * head_elements;
      for (int64_t i = 0; i < count; ++i) table[DistancePlace<Element>(stride, c % width, kBlock + i)] = row[i];
    }
    return {.table = storage.data(), .count = count};
  }

  // Pages for rows begin .. end-1; those before row 0 are the zero page. Rows that are not asked for hold NaN.
  KeyPages<Element> Pages(std::vector<int64_t>& ids, int64_t begin, int64_t end) {
    Element nan{};
    if constexpr (std::is_same_v<Element, float>) {
      nan = std::nanf("");
    } else {
      nan.bits = 0x7fc0;
    }
    if (zero_page_.empty()) zero_page_ = Elements(PageElements());
    const auto floor_divide = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
    const int64_t first = floor_divide(begin, kPageRows);
    for (int64_t page = first; page * kPageRows < end; ++page) {
      if (page < 0) {
        ids.push_back(-1);
        continue;
      }
      ids.push_back(static_cast<int64_t>(pages_.size() / PageElements()));
      std::vector<Element> content = Elements(PageElements());
      const int64_t width = run_.head_width, even = EvenHeadWidth(width), padded = PaddedHeadWidth(width);
      for (auto head = content.begin(); head != content.end(); head += HeadElements()) {
        for (int64_t lane = 0; lane < kPageRows; ++lane) {
          for (int64_t c = width; c < even; ++c) head[KeyPlace<Element>(c, lane)] = Element{};
          if (page * kPageRows + lane >= begin && page * kPageRows + lane < end) continue;
          for (int64_t c = 0; c < width; ++c) head[KeyPlace<Element>(c, lane)] = nan;
          for (int64_t c = 0; c < padded; ++c) head[even * kPageRows + ValuePlace<Element>(padded, lane, c)] = nan;
        }
      }
      pages_.insert(pages_.end(), content.begin(), content.end());
    }
    KeyPages<Element> pages;
    pages.first = first;
    pages.count = static_cast<int64_t>(ids.size());
    pages.ids = ids.data();
    return pages;
  }

  const Element* Page(const KeyPages<Element>& pages, int64_t row) const {
    const int64_t page = row >= 0 ? row / kPageRows : -((kPageRows - 1 - row) / kPageRows);
    const int64_t id = pages.ids[page - pages.first];
    return id < 0 ? pages.zero_page : pages.pages + id * pages.page_elements;
  }

  std::vector<double> Expected(int64_t query, int64_t head) const {
    const int64_t width = run_.head_width, padded = PaddedHeadWidth(width), position = run_.position + query;
    const int64_t own_vector = position / run_.chunk_size * run_.chunk_rank;
    std::vector<double> scores;
    std::vector<std::vector<double>> values;
    const auto meet = [&](const KeyPages<Element>& pages, const DistanceTable<Element>& table, int64_t row,
                          int64_t distance, bool in_window) {
      const Element* const page = Page(pages, row) + head * HeadElements();
      const int64_t lane = ((row % kPageRows) + kPageRows) % kPageRows;
      const Element* const positions = table.table + head * EvenHeadWidth(width) * table.stride();
      double score = 0;
      for (int64_t c = 0; c < width; ++c) {
        const int64_t channel = head * width + c;
        const double q = run_.queries[query * run_.stride + channel];
        score += (q + (in_window ? run_.window_bias[channel] : 0.0)) * Widen(page[KeyPlace<Element>(c, lane)]);
        score += (q + (in_window ? run_.relative_bias[channel] : 0.0)) *
                 Widen(positions[DistancePlace<Element>(table.stride(), c, kBlock + table.count - 1 - distance)]);
      }
      scores.push_back(score);
      std::vector<double>& value = values.emplace_back(width);
      const Element* const page_values = page + EvenHeadWidth(width) * kPageRows;
      for (int64_t c = 0; c < width; ++c) value[c] = Widen(page_values[ValuePlace<Element>(padded, lane, c)]);
    };
    for (int64_t j = run_.first_vector; j < own_vector; ++j) {
      meet(j < run_.segment_vector ? run_.memory : run_.segment, run_.chunk_distances, j, own_vector - 1 - j, false);
    }
    for (int64_t j = position - run_.window_length + 1; j <= position; ++j) {
      meet(run_.window, run_.window_distances, j, position - j, true);
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    std::vector<double> mixed(width, 0.0);
    for (size_t n = 0; n < scores.size(); ++n) {
      const double probability = std::exp(scores[n] - highest);
      sum += probability;
      for (int64_t c = 0; c < width; ++c) mixed[c] += probability * values[n][c];
    }
    for (double& value : mixed) value /= sum;
    return mixed;
  }

  std::mt19937_64 random_;
  AttentionRun<Element> run_;
  std::vector<float> queries_, output_, window_bias_, relative_bias_, scratch_;
  std::vector<Element> window_table_, chunk_table_, pages_, zero_page_;
  std::vector<int64_t> memory_ids_, segment_ids_, window_ids_;
};

template <typename Element>
class CausalAttention : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(CausalAttention, ElementTypes);

TYPED_TEST(CausalAttention, MeetsExactSumsForAnyShapeOnEveryInstructionSet) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t head_width = 1 + static_cast<int64_t>(random() % 100), chunk = 1 + static_cast<int64_t>(random() % 9);
    const int64_t window = 1 + static_cast<int64_t>(random() % 200), rank = 1 + static_cast<int64_t>(random() % 3);
    const int64_t memory = chunk * static_cast<int64_t>(random() % 40), segment = 4 * chunk;
    const int64_t position = static_cast<int64_t>(random() % 500);
    const int64_t count =
        1 + static_cast<int64_t>(random() % std::min<int64_t>(segment - position % segment, 64 - position % 64));
    Problem<TypeParam> problem(1 + trial % 3, head_width, window, chunk, rank, memory, position, count, trial);
    for (const InstructionSet set : InstructionSetsHere()) {
      EXPECT_LT(problem.Error(set), 5e-5)
          << InstructionSetName(set) << " heads " << 1 + trial % 3 << " width " << head_width << " window " << window
          << " chunk " << chunk << " rank " << rank << " memory " << memory << " position " << position;
    }
  }
}

TYPED_TEST(CausalAttention, AQuerysBitsDoNotDependOnTheQueriesAndHeadsBesideIt) {
  for (const InstructionSet set : InstructionSetsHere()) {
    Problem<TypeParam> problem(2, 24, 100, 4, 2, 64, 131, 13, 5);
    problem.Error(set);
    const std::vector<float> together = problem.output();
    AttentionRun<TypeParam>& run = problem.run();
    run.count = 1;
    for (int64_t i = 0; i < 13; ++i) {
      run.position = 131 + i;
      for (int64_t heads = 1; heads <= 2; ++heads) {
        run.heads = heads;
        std::fill_n(run.output, heads * 24, 0.0f);
        Attend(run, set);
        EXPECT_EQ(0, std::memcmp(run.output, &together[i * run.stride], heads * 24 * sizeof(float)))
            << InstructionSetName(set) << " query " << i << " heads " << heads;
      }
      run.queries += run.stride;
      run.output += run.stride;
    }
  }
}

TYPED_TEST(CausalAttention, SurvivesScoresThatOverflowAnExponential) {
  Problem<TypeParam> problem(1, 16, 40, 4, 1, 32, 70, 4, 9);
  std::vector<float> large(problem.run().queries, problem.run().queries + 4 * problem.run().stride);
  for (float& value : large) value *= 200;
  problem.run().queries = large.data();
  for (const InstructionSet set : InstructionSetsHere()) EXPECT_LT(problem.Error(set), 1e-3);
}

// A problem whose queries with their biases are bfloat16 numbers, so that tiles round only probabilities.
class TileProblem {
 public:
  TileProblem(int64_t heads, int64_t head_width, int64_t window, int64_t chunk, int64_t rank, int64_t memory,
              int64_t position, int64_t count, uint64_t seed)
      : problem_(heads, head_width, window, chunk, rank, memory, position, count, seed),
        scratch_(TileScratchFloats(head_width)) {
    const AttentionRun<BFloat16>& run = problem_.run();
    queries_ = Eighths(run.queries, run.stride * count);
    window_bias_ = Eighths(run.window_bias, heads * head_width);
    relative_bias_ = Eighths(run.relative_bias, heads * head_width);
    problem_.run().queries = queries_.data();
    problem_.run().window_bias = window_bias_.data();
    problem_.run().relative_bias = relative_bias_.data();
    problem_.PlacePages();
  }

  void AttendByTiles() {
    run().scratch = scratch_.data();
    cpu::AttendByTiles(run());
  }
  AttentionRun<BFloat16>& run() { return problem_.run(); }
  const Problem<BFloat16>& problem() const { return problem_; }

 private:
  static std::vector<float> Eighths(const float* from, int64_t count) {
    std::vector<float> rounded(count);
    for (int64_t i = 0; i < count; ++i) rounded[i] = std::round(from[i] * 8) / 16;
    return rounded;
  }

  Problem<BFloat16> problem_;
  std::vector<float> scratch_, queries_, window_bias_, relative_bias_;
};

TEST(TileAttention, MeetsExactSumsForAnyShape) {
  if (!HasBFloat16Tiles()) GTEST_SKIP() << "no tiles for bfloat16";
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 24; ++trial) {
    const int64_t head_width = 32 * (1 + static_cast<int64_t>(random() % 4));
    const int64_t chunk = trial % 2 == 0 ? 16 : 1 + static_cast<int64_t>(random() % 9);
    const int64_t window = 1 + static_cast<int64_t>(random() % 600), rank = 1 + static_cast<int64_t>(random() % 3);
    const int64_t memory = chunk * static_cast<int64_t>(random() % 400), segment = 4 * chunk;
    const int64_t position = static_cast<int64_t>(random() % 5000);
    const int64_t count =
        1 + static_cast<int64_t>(random() % std::min<int64_t>(segment - position % segment, 64 - position % 64));
    TileProblem problem(1 + trial % 3, head_width, window, chunk, rank, memory, position, count, trial);
    problem.AttendByTiles();
    EXPECT_LT(problem.problem().ErrorOfOutput(), 1.2e-2)
        << "heads " << 1 + trial % 3 << " width " << head_width << " window " << window << " chunk " << chunk
        << " rank " << rank << " memory " << memory << " position " << position << " count " << count;
  }
}

TEST(TileAttention, AQuerysBitsDoNotDependOnTheQueriesBesideIt) {
  if (!HasBFloat16Tiles()) GTEST_SKIP() << "no tiles for bfloat16";
  TileProblem problem(2, 64, 100, 16, 2, 512, 1001, 20, 5);
  problem.AttendByTiles();
  const std::vector<float> together = problem.problem().output();
  AttentionRun<BFloat16>& run = problem.run();
  for (int64_t i = 0; i < 20; ++i) {
    run.count = 1 + i % 2 * std::min<int64_t>(19 - i, 3);
    run.position = 1001 + i;
    std::fill_n(run.output, run.stride, 0.0f);
    problem.AttendByTiles();
    EXPECT_EQ(0, std::memcmp(run.output, &together[i * run.stride], 128 * sizeof(float))) << "query " << i;
    run.queries += run.stride;
    run.output += run.stride;
  }
}

}  // namespace longshort::models::cpu::causal_attention_kernels_test
