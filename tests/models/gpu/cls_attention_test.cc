// Attention of CLS rows on the tested device, against plain sums in double precision.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::cls_attention_test {

struct Model {
  int heads = 2;
  int head_width = 16;
  int gap = 0;  // rows between items: another item's CLS, say
  bool values_apart = false;
};

template <typename Element>
class Problem final {
 public:
  // The rows of item i depend on seed i and their number only.
  Problem(GpuDevice& device, const Model& model, const std::vector<int64_t>& lengths) : model_(model), arrays_(device) {
    int64_t all = 0;
    for (const int64_t length : lengths) {
      std::mt19937_64 random(length);
      for (TestRows<Element>* const part : {&queries_, &keys_, &values_}) part->Add(1, random);
      for (TestRows<Element>* const part : {&rows_, &row_values_}) {
        part->AddNothing(model.gap);
        part->Add(length, random);
      }
      output_.AddNothing(1);
      ranges_.push_back({.first_row = all + model.gap, .rows = length});
      all += model.gap + length;
      max_splits_ = std::max(max_splits_, SplitsOf(length));
    }
    const auto items = static_cast<int64_t>(lengths.size());
    const int64_t places = items * model.heads * max_splits_;
    attention_ = {.element = kTypeOf<Element>,
                  .heads = model.heads,
                  .head_width = model.head_width,
                  .scale = kScale,
                  .items = static_cast<int>(items),
                  .max_splits = static_cast<int>(max_splits_),
                  .ranges = {.each = arrays_.Put(ranges_)},
                  .queries = queries_.Put(),
                  .keys = keys_.Put(),
                  .values = values_.Put(),
                  .row_keys = rows_.Put(),
                  .row_values = {},
                  .output = output_.Put(),
                  .partial_outputs = arrays_.Make<float>(places * PaddedHeadWidth(model.head_width)),
                  .partial_sums = arrays_.Make<float>(places * 2)};
    attention_.row_values = model.values_apart ? row_values_.Put() : attention_.row_keys;
  }

  std::vector<float> Run() {
    arrays_.Launch(AttendToRowsCall(attention_));
    arrays_.Launch(MergeRowsCall(attention_));
    return output_.Get();
  }
  void Check(const std::vector<float>& output) const {
    for (size_t item = 0; item < ranges_.size(); ++item) {
      for (int head = 0; head < model_.heads; ++head) {
        const int channel = head * model_.head_width;
        std::vector<SeenVector> seen = {{keys_.Row(item) + channel, values_.Row(item) + channel}};
        for (int64_t i = 0; i < ranges_[item].rows; ++i) {
          const int64_t row = ranges_[item].first_row + i;
          seen.push_back({rows_.Row(row) + channel, (model_.values_apart ? row_values_ : rows_).Row(row) + channel});
        }
        const std::vector<double> expected =
            PlainAttention(queries_.Row(item) + channel, model_.head_width, kScale, seen);
        for (int c = 0; c < model_.head_width; ++c) {
          // Sums are float32, except in the output.
          const double bound = 1e-5 + (sizeof(Element) == 4 ? 0 : std::abs(expected[c]) / 256);
          ASSERT_NEAR(output[item * width_ + channel + c], expected[c], bound)
              << "item " << item << ", head " << head << ", channel " << c;
        }
      }
    }
  }

 private:
  static constexpr float kScale = 0.3f;

  const Model model_;
  DeviceArrays arrays_;
  std::vector<ItemRows> ranges_;
  int64_t max_splits_ = 0;
  const int64_t width_ = model_.heads * model_.head_width;
  TestRows<Element> queries_{arrays_, width_, width_ + 1}, keys_{arrays_, width_, width_ + 3},
      values_{arrays_, width_, width_}, rows_{arrays_, width_, width_ + 2}, row_values_{arrays_, width_, width_ + 4},
      output_{arrays_, width_, width_ + 5};
  ClsAttention attention_ = {};
};

template <typename Element>
class GpuClsAttention : public ::testing::Test {
 protected:
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuClsAttention, Elements);

TYPED_TEST(GpuClsAttention, AttendsToItemsOfAnyLengths) {
  for (const Model& model :
       {Model{}, Model{.heads = 1, .head_width = 1}, Model{.heads = 3, .head_width = 33, .gap = 1},
        Model{.heads = 1, .head_width = 100}, Model{.head_width = 40, .gap = 2, .values_apart = true}}) {
    // None, one, less than a split, a split, one row more, several.
    Problem<TypeParam> problem(*this->device_, model, {0, 1, 30, 64, 65, 200});
    problem.Check(problem.Run());
  }
}

TYPED_TEST(GpuClsAttention, AnItemsBitsDependOnItOnly) {
  const std::vector<float> alone = Problem<TypeParam>(*this->device_, {}, {100}).Run();
  const std::vector<float> together = Problem<TypeParam>(*this->device_, {}, {3, 100, 170}).Run();
  EXPECT_EQ(std::vector<float>(together.begin() + alone.size(), together.begin() + 2 * alone.size()), alone);
}

TYPED_TEST(GpuClsAttention, IsTheSameInEveryOrderOfThreads) {
  std::vector<float> first;
  for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
    SetEmulation(*this->device_, options);
    const std::vector<float> output =
        Problem<TypeParam>(*this->device_, {.heads = 1, .values_apart = true}, {70}).Run();
    if (first.empty()) first = output;
    EXPECT_EQ(output, first) << NameOf(options);
  }
}

}  // namespace longshort::models::cuda::cls_attention_test
