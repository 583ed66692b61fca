// The convolution of values on the tested device, against plain sums in double precision.

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "tests/models/gpu/document_tiles.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::value_convolution_test {

struct Model {
  int heads = 2;
  int head_width = 16;
  int kernel = 5;
  int padding = 8;  // elements between rows; odd: rows are not read four elements at once
  int padding_of_sums = 2 * padding;
};

// Positions of a document's rows: all from `first` on, except every `masked`th one; 0: all.
std::vector<int64_t> Positions(int64_t first, int64_t end, int64_t masked = 0) {
  std::vector<int64_t> positions;
  for (int64_t position = first; position < end; ++position) {
    if (masked == 0 || position % masked != 0) positions.push_back(position);
  }
  return positions;
}

template <typename Element>
class Problem final {
 public:
  // The rows of a document depend on their number only.
  Problem(GpuDevice& device, const Model& model, const std::vector<std::vector<int64_t>>& documents)
      : model_(model), arrays_(device) {
    for (const std::vector<int64_t>& positions : documents) {
      const auto rows = static_cast<int64_t>(positions.size());
      std::mt19937_64 random(rows);
      values_.Add(rows, random);
      sums_.Add(rows, random);
      ranges_.push_back({.first_row = static_cast<int64_t>(positions_.size()), .rows = rows});
      positions_.insert(positions_.end(), positions.begin(), positions.end());
      tiles_.Add({{.first_query = 0, .end_query = rows}});
    }
    std::mt19937_64 random(1);
    const std::vector<Element> taps = RandomElements<Element>(random, model.heads * model.kernel);
    taps_ = Floats(taps);
    convolution_ = {.element = kTypeOf<Element>,
                    .heads = model.heads,
                    .head_width = model.head_width,
                    .kernel = model.kernel,
                    .taps = arrays_.Put(taps),
                    .positions = arrays_.Put(positions_),
                    .documents = arrays_.Put(ranges_),
                    .tiles = arrays_.Put(tiles_.tiles),
                    .tile_count = static_cast<int>(tiles_.tiles.size()),
                    .values = values_.Put(),
                    .sums = {}};
  }

  // [rows][heads * head_width]
  std::vector<float> Run() {
    convolution_.sums = sums_.Put();
    arrays_.Launch(ValueConvolutionCall(convolution_));
    return sums_.Get();
  }
  void Check(const std::vector<float>& output) const {
    for (const ItemRows& document : ranges_) {
      for (int64_t row = document.first_row; row < document.first_row + document.rows; ++row) {
        for (int64_t channel = 0; channel < width_; ++channel) {
          const double expected = Expected(document, row, channel);
          // Sums are float32, except in the output.
          const double bound = 2e-5 + (sizeof(Element) == 4 ? 0 : std::abs(expected) / 256);
          ASSERT_NEAR(output[row * width_ + channel], expected, bound) << "row " << row << ", channel " << channel;
        }
      }
    }
  }

 private:
  double Expected(const ItemRows& document, int64_t row, int64_t channel) const {
    const int half = model_.kernel / 2;
    double sum = sums_.Row(row)[channel];
    for (int64_t other = document.first_row; other < document.first_row + document.rows; ++other) {
      const int64_t distance = positions_[other] - positions_[row];
      if (std::abs(distance) > half) continue;
      const double tap = taps_[channel / model_.head_width * model_.kernel + half + distance];
      sum += tap * values_.Row(other)[channel];
    }
    return sum;
  }

  const Model model_;
  DeviceArrays arrays_;
  DocumentTiles tiles_;
  std::vector<ItemRows> ranges_;
  std::vector<int64_t> positions_;
  std::vector<float> taps_;
  const int64_t width_ = model_.heads * model_.head_width;
  TestRows<Element> values_{arrays_, width_, width_ + model_.padding},
      sums_{arrays_, width_, width_ + model_.padding_of_sums};
  ValueConvolution convolution_ = {};
};

template <typename Element>
class GpuValueConvolution : public ::testing::Test {
 protected:
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuValueConvolution, Elements);

TYPED_TEST(GpuValueConvolution, ReachesPositionsOfTheDocumentOnly) {
  // One row, fewer than taps, a tile, one row more, several; in documents that begin with masked tokens, have masked
  // tokens throughout, or are shorter than the taps.
  Problem<TypeParam> problem(*this->device_, {},
                             {Positions(0, 1),
                              Positions(3, 5),
                              Positions(0, 64),
                              Positions(0, 65),
                              Positions(70, 71),
                              Positions(0, 150, 4),
                              Positions(0, 90, 2),
                              {0, 1, 3, 9, 40, 41, 100}});
  problem.Check(problem.Run());
}

TYPED_TEST(GpuValueConvolution, MeetsPlainSumsForAnyShape) {
  for (const Model& model :
       {Model{.kernel = 1}, Model{.heads = 3, .head_width = 5, .kernel = 35}, Model{.heads = 1, .head_width = 1},
        // Four elements of a row that are not one head's.
        Model{.heads = 4, .head_width = 5}, Model{.heads = 2, .head_width = 20, .kernel = 35, .padding = 1},
        Model{.padding_of_sums = 1}, Model{.padding = 1, .padding_of_sums = 8},
        // More taps than the documents have positions.
        Model{.heads = 1, .head_width = 100, .kernel = 301, .padding = 0}}) {
    Problem<TypeParam> problem(*this->device_, model, {Positions(0, 70, 7), Positions(0, 20)});
    problem.Check(problem.Run());
  }
}

TYPED_TEST(GpuValueConvolution, ADocumentsBitsDependOnItOnly) {
  const Model model = {.kernel = 35};
  const std::vector<float> alone = Problem<TypeParam>(*this->device_, model, {Positions(0, 100, 9)}).Run();
  const std::vector<float> together =
      Problem<TypeParam>(*this->device_, model, {Positions(0, 3), Positions(0, 100, 9), Positions(0, 70)}).Run();
  const int64_t before = 3 * model.heads * model.head_width;
  EXPECT_EQ(std::vector<float>(together.begin() + before, together.begin() + before + alone.size()), alone);
}

TYPED_TEST(GpuValueConvolution, IsTheSameInEveryOrderOfThreads) {
  std::vector<float> first;
  for (const int padding : {8, 1}) {
    for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
      SetEmulation(*this->device_, options);
      const std::vector<float> output =
          Problem<TypeParam>(*this->device_, {.padding = padding}, {Positions(0, 70, 8)}).Run();
      if (first.empty()) first = output;
      EXPECT_EQ(output, first) << NameOf(options);
    }
  }
}

}  // namespace longshort::models::cuda::value_convolution_test
