// The kernels that write cache pages and mix chunks, on the tested device, against plain sums in double precision.

#include "models/ops/causal_attention/cache_rows.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/random_elements.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::cache_rows_test {

template <typename E, typename R>
struct Types {
  using Element = E;
  using Row = R;
};

template <typename T>
class GpuCacheRows : public ::testing::Test {
 protected:
  using Element = typename T::Element;
  using Row = typename T::Row;
  // The allowed difference of a result: for bfloat16, half of the last of its 8 bits, and a little for the sum.
  static double Bound(double expected) { return 1e-5 + (sizeof(Element) == 4 ? 0 : std::abs(expected) / 256); }

  std::mt19937_64 random_{1};
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};
using TestedTypes = ::testing::Types<Types<float, float>, Types<BFloat16, float>, Types<BFloat16, BFloat16>>;
TYPED_TEST_SUITE(GpuCacheRows, TestedTypes);

TYPED_TEST(GpuCacheRows, AppendsKeysAndValuesToTheirSlots) {
  using Element = typename TypeParam::Element;
  using Row = typename TypeParam::Row;
  for (const auto& [heads, head_width] : {std::pair{3, 8}, {1, 33}, {2, 64}, {1, 100}}) {
    // Rows that are read in vectors, if the width allows it; and rows where all, or every second one, begin misaligned.
    for (const auto& [has_biases, first, gap] :
         {std::tuple{false, 0, 4}, {true, 0, 4}, {false, 1, 4}, {true, 0, 5}, {false, 0, 5}}) {
      const int width = heads * head_width, padded = static_cast<int>(PaddedHeadWidth(head_width));
      const int64_t stride = 2 * width + gap, page_elements = LayerElements(heads, head_width) + 64;
      const int64_t first_page = has_biases ? kFarPage : 0;
      Element* const pages = this->arrays_.template Make<Element>(3 * page_elements);
      // The rows of one kind of page, some of which others write.
      struct Part {
        std::vector<Row> rows;
        std::vector<int64_t> slots;
        std::vector<float> gain, bias;
      };
      const std::vector<float> biases = RandomElements<float>(this->random_, 2 * width);
      const auto part = [&](std::vector<int64_t> slots) -> Part {
        for (int64_t& slot : slots) slot += slot < 0 ? 0 : first_page * kPageRows;
        return {.rows = RandomElements<Row>(this->random_, first + slots.size() * stride),
                .slots = slots,
                .gain = RandomElements<float>(this->random_, width),
                .bias = RandomElements<float>(this->random_, width)};
      };
      const std::vector<Part> parts = {part({0, 2 * 64 + 63, -1, 64 + 5}), part({17}), part({-1, 3})};
      const auto keys = [&](const Part& rows) -> NewKeys {
        return {.row = kTypeOf<Row>,
                .keys_values = {.data = this->arrays_.Put(rows.rows) + first, .stride = stride},
                .biases = has_biases ? this->arrays_.Put(biases) : nullptr,
                .norm = {.gain = this->arrays_.Put(rows.gain), .bias = this->arrays_.Put(rows.bias)},
                .slots = this->arrays_.Put(rows.slots),
                .count = static_cast<int64_t>(rows.slots.size()),
                .pages = Before(pages, first_page * page_elements)};
      };
      this->arrays_.Launch(WriteRowsCall({.element = kTypeOf<Element>,
                                          .heads = heads,
                                          .head_width = head_width,
                                          .epsilon = 1e-5f,
                                          .page_elements = page_elements,
                                          .window = keys(parts[0]),
                                          .memory = keys(parts[1]),
                                          .segment = keys(parts[2]),
                                          .kept = {}}));
      const std::vector<float> got = Floats(this->arrays_.Get(pages, 3 * page_elements));
      int64_t written = 0;
      for (const float value : got) written += !std::isnan(value);
      EXPECT_EQ(written, 5 * 2 * heads * padded);
      for (const Part& rows : parts) {
        for (size_t i = 0; i < rows.slots.size(); ++i) {
          if (rows.slots[i] < 0) continue;
          const int64_t slot = rows.slots[i] - first_page * kPageRows;
          for (int which = 0; which < 2; ++which) {
            const auto at = [&](int c) {
              return double{ToFloat(rows.rows[first + i * stride + which * width + c])} +
                     (has_biases ? biases[which * width + c] : 0.0);
            };
            double mean = 0, variance = 0;
            for (int c = 0; c < width; ++c) mean += at(c) / width;
            for (int c = 0; c < width; ++c) variance += std::pow(at(c) - mean, 2) / width;
            for (int head = 0; head < heads; ++head) {
              for (int c = 0; c < padded; ++c) {
                const int column = head * head_width + c;
                const float value = got[slot / 64 * page_elements + ((2 * head + which) * 64 + slot % 64) * padded + c];
                if (c >= head_width) {
                  ASSERT_EQ(value, 0);
                } else {
                  const double expected =
                      (at(column) - mean) / std::sqrt(variance + 1e-5) * rows.gain[column] + rows.bias[column];
                  ASSERT_NEAR(value, expected, this->Bound(expected));
                }
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(GpuCacheRows, FillsTheZeroPageWithOneRow) {
  using Element = typename TypeParam::Element;
  // Key and value have mean 0 and variance 1.
  std::vector<float> row(2 * 16, -1);
  for (const int c : {1, 2, 5, 8, 9, 11, 14, 15, 16, 20, 22, 23, 24, 26, 29, 31}) row[c] = 1;
  std::vector<int64_t> slots(kPageRows);
  for (int i = 0; i < kPageRows; ++i) slots[i] = i;
  Element* const page = this->arrays_.template Make<Element>(LayerElements(2, 8));
  this->arrays_.Launch(WriteRowsCall({.element = kTypeOf<Element>,
                                      .heads = 2,
                                      .head_width = 8,
                                      .epsilon = 0,
                                      .page_elements = 0,
                                      .window = {.row = ElementType::kFloat,
                                                 .keys_values = {.data = this->arrays_.Put(row), .stride = 0},
                                                 .biases = nullptr,
                                                 .norm = {.gain = this->arrays_.Put(std::vector<float>(16, 2)),
                                                          .bias = this->arrays_.Put(std::vector<float>(16, 0))},
                                                 .slots = this->arrays_.Put(slots),
                                                 .count = kPageRows,
                                                 .pages = page},
                                      .memory = {},
                                      .segment = {},
                                      .kept = {}}));
  const std::vector<float> got = Floats(this->arrays_.Get(page, LayerElements(2, 8)));
  for (int i = 0; i < kPageRows; ++i) {
    for (int c = 0; c < 8; ++c) {
      ASSERT_NEAR(got[(2 * kPageRows + i) * 32 + c], 2 * row[8 + c], 1e-5);  // head 1's keys
      ASSERT_NEAR(got[(3 * kPageRows + i) * 32 + c], 2 * row[24 + c], 1e-5);
    }
  }
}

// A stream that is read in steps: the mixed rows do not depend on how it was split.
template <typename Row>
class Stream final {
 public:
  Stream(DeviceArrays& arrays, int heads, int head_width, int chunk_size, int chunk_rank, uint64_t seed)
      : arrays_(arrays), random_(seed), width_(heads * head_width), columns_(heads * chunk_rank), size_(chunk_size) {
    page_floats_ = size_ * OpenRowFloats(width_, columns_) + 4;
    inputs_ = RandomElements<float>(random_, kRows * width_);
    keys_values_ = RandomElements<Row>(random_, kRows * 2 * width_);
    logits_ = RandomElements<Row>(random_, kRows * columns_, 2);
    rows_ = {.row = kTypeOf<Row>,
             .inputs = {},
             .keys_values = {},
             .logits = {},
             .heads = heads,
             .head_width = head_width,
             .chunk_size = chunk_size,
             .chunk_rank = chunk_rank,
             .open_chunks = arrays.Make<float>(2 * page_floats_),
             .page_floats = page_floats_};
  }

  // Mixed inputs, then mixed keys and values, of the chunks that rows first .. end-1 make full.
  std::vector<float> Step(int64_t first, int64_t end) {
    const auto part = [&]<typename T>(const std::vector<T>& all, int64_t width) {
      const std::vector<T> rows(all.begin() + first * width, all.begin() + end * width);
      return Rows{.data = arrays_.Put(rows), .stride = width};
    };
    rows_.inputs = part(inputs_, width_);
    rows_.keys_values = part(keys_values_, 2 * width_);
    rows_.logits = part(logits_, columns_);
    std::vector<int64_t> ends = {-1}, kept = {0}, pages = {0}, kept_rows = {-1}, kept_slots = {0};
    for (int64_t chunk = first / size_; (chunk + 1) * size_ <= end; ++chunk) {
      ends.push_back((chunk + 1) * size_ - 1 - first);
      kept.push_back(std::max<int64_t>(0, first - chunk * size_));
      pages.push_back(1);
    }
    for (int64_t row = std::max(first, end / size_ * size_); row < end; ++row) {
      kept_rows.push_back(row - first);
      kept_slots.push_back(size_ + row % size_);  // page 1
    }
    const int64_t vectors = static_cast<int64_t>(ends.size()) * rows_.chunk_rank;
    Row* const mixed_inputs = arrays_.Make<Row>(vectors * width_);
    float* const mixed_keys_values = arrays_.Make<float>(vectors * 2 * width_);
    arrays_.Launch(MixChunksCall({.rows = rows_,
                                  .chunk_ends = arrays_.Put(ends),
                                  .chunk_kept = arrays_.Put(kept),
                                  .chunk_pages = arrays_.Put(pages),
                                  .count = static_cast<int64_t>(ends.size()),
                                  .mixed_inputs = {.data = mixed_inputs, .stride = width_},
                                  .mixed_keys_values = {.data = mixed_keys_values, .stride = 2 * width_}}));
    arrays_.Launch(WriteRowsCall({.element = kTypeOf<Row>,
                                  .heads = rows_.heads,
                                  .head_width = rows_.head_width,
                                  .epsilon = 0,
                                  .page_elements = 0,
                                  .window = {},
                                  .memory = {},
                                  .segment = {},
                                  .kept = {.rows = rows_,
                                           .indices = arrays_.Put(kept_rows),
                                           .slots = arrays_.Put(kept_slots),
                                           .count = static_cast<int64_t>(kept_rows.size())}}));
    // The stream's page is 1, and the padding row has page 0.
    const std::vector<float> of_another = Floats(arrays_.Get(rows_.open_chunks, page_floats_));
    EXPECT_TRUE(std::all_of(of_another.begin(), of_another.end(), [](float value) { return std::isnan(value); }));
    std::vector<float> mixed = Floats(arrays_.Get(mixed_inputs, vectors * width_));
    const std::vector<float> others = arrays_.Get(mixed_keys_values, vectors * 2 * width_);
    // The first chunk was padding.
    const int64_t none = rows_.chunk_rank * width_;
    EXPECT_TRUE(std::isnan(mixed[0]) && std::isnan(others[0]));
    mixed.erase(mixed.begin(), mixed.begin() + none);
    mixed.insert(mixed.end(), others.begin() + 2 * none, others.end());
    return mixed;
  }

  // The same by plain sums, of chunk 0.
  std::vector<double> Expected() const {
    std::vector<double> inputs, others;
    for (int t = 0; t < rows_.chunk_rank; ++t) {
      for (int64_t c = 0; c < 3 * width_; ++c) {
        const int64_t column = c % width_ / rows_.head_width * rows_.chunk_rank + t;
        double sum = 0, mixed = 0, largest = -INFINITY;
        for (int64_t i = 0; i < size_; ++i) {
          largest = std::max<double>(largest, ToFloat(logits_[i * columns_ + column]));
        }
        for (int64_t i = 0; i < size_; ++i) {
          const double weight = std::exp(ToFloat(logits_[i * columns_ + column]) - largest);
          sum += weight;
          mixed += weight * (c < width_ ? inputs_[i * width_ + c] : ToFloat(keys_values_[i * 2 * width_ + c - width_]));
        }
        (c < width_ ? inputs : others).push_back(mixed / sum);
      }
    }
    inputs.insert(inputs.end(), others.begin(), others.end());
    return inputs;
  }

 private:
  static constexpr int64_t kRows = 64;

  DeviceArrays& arrays_;
  std::mt19937_64 random_;
  const int64_t width_, columns_, size_;
  int64_t page_floats_ = 0;
  std::vector<float> inputs_;
  std::vector<Row> keys_values_, logits_;
  ChunkRows rows_ = {};
};

TYPED_TEST(GpuCacheRows, MixesChunksTheSameHoweverTheyWereCut) {
  using Row = typename TypeParam::Row;
  // heads, head width, chunk, rank: read in vectors or not; several blocks of channels, which begin and end inside
  // heads; aligned rows with misaligned heads; chunks of one row.
  for (const auto& [heads, head_width, chunk, rank] : {std::tuple{2, 8, 4, 1},
                                                       {3, 7, 5, 3},
                                                       {9, 64, 16, 1},
                                                       {8, 33, 3, 1},
                                                       {4, 6, 5, 1},
                                                       {2, 100, 3, 2},
                                                       {1, 4, 1, 1}}) {
    for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
      SetEmulation(*this->device_, options);
      Stream<Row> at_once(this->arrays_, heads, head_width, chunk, rank, head_width);
      const std::vector<float> whole = at_once.Step(0, chunk);
      const std::vector<double> expected = at_once.Expected();
      ASSERT_EQ(whole.size(), expected.size());
      const double bound = sizeof(Row) == 4 ? 2e-6 : 0.01;
      for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], expected[i], bound);

      Stream<Row> cut(this->arrays_, heads, head_width, chunk, rank, head_width);
      int64_t first = 0;
      for (const int64_t rows : {chunk / 3, chunk / 3}) {
        if (rows == 0) continue;
        EXPECT_THAT(cut.Step(first, first + rows), ::testing::IsEmpty());
        first += rows;
      }
      EXPECT_EQ(cut.Step(first, chunk + (chunk > 1 ? 1 : 0)), whole);
    }
  }
}

}  // namespace longshort::models::cuda::cache_rows_test
