// The dynamic projection of whole items on the tested device, against plain sums in double precision.

#include <cmath>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/landmarks/landmarks_kernels.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::landmarks_test {

struct Model {
  int heads = 2;
  int head_width = 16;
  int rank = 3;
  int padding = 8;  // elements between rows of keys and values; odd: rows are not read by pieces
  int others = 1;   // 0 or 1: an item's vectors before its landmarks
  int padding_of_values = padding;
  bool norms_before = false;
};

template <typename Element>
class Problem final {
 public:
  // The rows of an item depend on their number only.
  Problem(GpuDevice& device, const Model& model, const std::vector<int64_t>& lengths) : model_(model), arrays_(device) {
    int64_t all = 0;
    const int item_vectors = model.others + model.rank;
    for (const int64_t length : lengths) {
      std::mt19937_64 random(length);
      logits_.Add(length, random, 2);
      keys_.Add(length, random);
      values_.Add(length, random);
      if (model.others > 0) {
        keys_before_.Add(1, random);
        values_before_.Add(1, random);
      }
      landmark_keys_.AddNothing(item_vectors);
      landmark_values_.AddNothing(item_vectors);
      ranges_.push_back({.first_row = all, .rows = length});
      all += length;
      max_splits_ = std::max(max_splits_, LandmarkSplitsOf(length));
    }
    std::mt19937_64 random(1);
    for (std::vector<float>* const weights : {&gains_[0], &biases_[0], &gains_[1], &biases_[1]}) {
      *weights = RandomElements<float>(random, width_);
    }
    const auto items = static_cast<int64_t>(lengths.size());
    const int64_t places = items * max_splits_ * model.rank * model.heads;
    landmarks_ = {.element = kTypeOf<Element>,
                  .heads = model.heads,
                  .head_width = model.head_width,
                  .rank = model.rank,
                  .items = static_cast<int>(items),
                  .max_splits = static_cast<int>(max_splits_),
                  .ranges = {.each = arrays_.Put(ranges_)},
                  .logits = logits_.Put(),
                  .keys = keys_.Put(),
                  .values = values_.Put(),
                  .key_norm = {.gain = arrays_.Put(gains_[0]), .bias = arrays_.Put(biases_[0])},
                  .value_norm = {.gain = arrays_.Put(gains_[1]), .bias = arrays_.Put(biases_[1])},
                  .epsilon = kEpsilon,
                  .keys_before = model.others > 0 ? keys_before_.Put() : Rows{},
                  .values_before = model.others > 0 ? values_before_.Put() : Rows{},
                  .norms_before = model.norms_before,
                  .landmark_keys = landmark_keys_.Put(),
                  .landmark_values = landmark_values_.Put(),
                  .partial_outputs = arrays_.Make<float>(places * 2 * PaddedHeadWidth(model.head_width)),
                  .partial_sums = arrays_.Make<float>(places * 2)};
  }

  // Keys and then values, [items][others + rank][heads * head_width].
  std::vector<float> Run() {
    arrays_.Launch(MixSplitsCall(landmarks_));
    arrays_.Launch(MergeSplitsCall(landmarks_));
    std::vector<float> output = landmark_keys_.Get();
    const std::vector<float> values = landmark_values_.Get();
    output.insert(output.end(), values.begin(), values.end());
    return output;
  }
  void Check(const std::vector<float>& output) const {
    const int64_t items = static_cast<int64_t>(ranges_.size()), vectors = model_.others + model_.rank;
    for (int64_t part = 0; part < 2; ++part) {
      for (int64_t item = 0; item < items; ++item) {
        for (int64_t vector = 0; vector < vectors; ++vector) {
          const float* const got = output.data() + ((part * items + item) * vectors + vector) * width_;
          if (vector < model_.others && !model_.norms_before) {
            const float* const copied = BeforeOf(part).Row(item);
            for (int64_t c = 0; c < width_; ++c) ASSERT_EQ(got[c], copied[c]);
            continue;
          }
          const float* const before = vector < model_.others ? BeforeOf(part).Row(item) : nullptr;
          const std::vector<double> expected =
              before != nullptr ? Normed(part, {before, before + width_})
                                : Normed(part, Mixed(part, ranges_[item], static_cast<int>(vector) - model_.others));
          for (int64_t c = 0; c < width_; ++c) {
            ASSERT_NEAR(got[c], expected[c], Bound(expected[c]))
                << "part " << part << ", item " << item << ", vector " << vector << ", channel " << c;
          }
        }
      }
    }
  }

 private:
  static constexpr float kEpsilon = 1e-5f;

  // The norm divides the mixed values and their error by the deviation. A vector of one channel becomes 0.
  double Bound(double expected) const { return sizeof(Element) == 4 ? 2e-5 : 2e-2 + std::abs(expected) / 256; }
  std::vector<double> Mixed(int64_t part, const ItemRows& range, int vector) const {
    std::vector<double> mixed(width_, 0.0);
    for (int head = 0; head < model_.heads; ++head) {
      const int column = head * model_.rank + vector;
      double highest = -INFINITY, sum = 0;
      for (int64_t i = range.first_row; i < range.first_row + range.rows; ++i) {
        highest = std::max<double>(highest, logits_.Row(i)[column]);
      }
      for (int64_t i = range.first_row; i < range.first_row + range.rows; ++i) {
        const double weight = std::exp(logits_.Row(i)[column] - highest);
        sum += weight;
        for (int c = head * model_.head_width; c < (head + 1) * model_.head_width; ++c) {
          mixed[c] += weight * (part == 0 ? keys_ : values_).Row(i)[c];
        }
      }
      for (int c = head * model_.head_width; c < (head + 1) * model_.head_width; ++c) mixed[c] /= sum;
    }
    return mixed;
  }
  std::vector<double> Normed(int64_t part, std::vector<double> mixed) const {
    double mean = 0, variance = 0;
    for (const double value : mixed) mean += value / width_;
    for (const double value : mixed) variance += std::pow(value - mean, 2) / width_;
    for (int64_t c = 0; c < width_; ++c) {
      mixed[c] = (mixed[c] - mean) / std::sqrt(variance + kEpsilon) * gains_[part][c] + biases_[part][c];
    }
    return mixed;
  }

  const TestRows<Element>& BeforeOf(int64_t part) const { return part == 0 ? keys_before_ : values_before_; }

  const Model model_;
  DeviceArrays arrays_;
  std::vector<ItemRows> ranges_;
  int64_t max_splits_ = 0;
  const int64_t width_ = model_.heads * model_.head_width, columns_ = model_.heads * model_.rank;
  std::vector<float> gains_[2], biases_[2];
  TestRows<Element> logits_{arrays_, columns_, columns_ + 1}, keys_{arrays_, width_, width_ + model_.padding},
      values_{arrays_, width_, width_ + model_.padding_of_values}, landmark_keys_{arrays_, width_, width_ + 1},
      landmark_values_{arrays_, width_, width_}, keys_before_{arrays_, width_, width_ + 3},
      values_before_{arrays_, width_, width_};
  Landmarks landmarks_ = {};
};

template <typename Element>
class GpuLandmarks : public ::testing::Test {
 protected:
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuLandmarks, Elements);

TYPED_TEST(GpuLandmarks, CompressesItemsOfAnyLengths) {
  // One row, less than a block, a block, one row more, a split, and three splits.
  Problem<TypeParam> problem(*this->device_, {.heads = 1}, {1, 30, 64, 65, 256, 513});
  problem.Check(problem.Run());
}

TYPED_TEST(GpuLandmarks, MeetsPlainSumsForAnyShape) {
  for (const Model& model :
       {Model{.heads = 3, .head_width = 33, .rank = 1, .padding = 0, .others = 0}, Model{.head_width = 64, .rank = 16},
        Model{.heads = 1, .rank = 35, .padding = 1}, Model{.heads = 1, .head_width = 128, .rank = 2},
        Model{.heads = 2, .head_width = 100, .rank = 2, .padding = 3}, Model{.padding = 1, .padding_of_values = 8},
        Model{.padding = 8, .padding_of_values = 1}, Model{.head_width = 33, .norms_before = true}}) {
    Problem<TypeParam> problem(*this->device_, model, {20, 70});
    problem.Check(problem.Run());
  }
}

TYPED_TEST(GpuLandmarks, AnItemsBitsDependOnItOnly) {
  const Model model = {.heads = 1, .rank = 2, .others = 0};
  const std::vector<float> alone = Problem<TypeParam>(*this->device_, model, {300}).Run();
  const std::vector<float> together = Problem<TypeParam>(*this->device_, model, {10, 300, 600}).Run();
  const size_t size = alone.size() / 2;  // of an item's keys
  for (size_t i = 0; i < size; ++i) {
    EXPECT_EQ(together[size + i], alone[i]);
    EXPECT_EQ(together[4 * size + i], alone[size + i]);
  }
}

TYPED_TEST(GpuLandmarks, IsTheSameInEveryOrderOfThreads) {
  std::vector<float> first;
  for (const int padding : {8, 1}) {
    for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
      SetEmulation(*this->device_, options);
      Problem<TypeParam> problem(*this->device_, {.heads = 1, .padding = padding, .others = 0}, {150});
      const std::vector<float> output = problem.Run();
      problem.Check(output);
      if (first.empty()) first = output;
      EXPECT_EQ(output, first) << NameOf(options);
    }
  }
}

}  // namespace longshort::models::cuda::landmarks_test
