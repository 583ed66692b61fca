// Attention on grids of tokens on the tested device, against plain sums in double precision.

#include <cstdlib>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "tests/models/gpu/emulation/every_order.h"
#include "tests/models/gpu/test_rows.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::window_attention_2d_test {

struct Model {
  int height = 7;
  int width = 9;
  int side = 4;
  int shared = 3;
  bool bias = false;
  int heads = 2;
  int head_width = 8;
  int padding = 0;  // elements between rows; odd: rows are not read by pieces
  int globals = 1;  // rows of an image before its grid
};

template <typename Element>
class Problem final {
 public:
  // An image's rows follow from its seed.
  Problem(GpuDevice& device, const Model& model, const std::vector<uint64_t>& seeds)
      : model_(model), images_(static_cast<int64_t>(seeds.size())), arrays_(device) {
    for (const uint64_t seed : seeds) {
      std::mt19937_64 random(seed);
      for (TestRows<Element>* const part : {&queries_, &keys_, &values_}) {
        part->AddNothing(model.globals);
        part->Add(tokens_, random);
      }
      for (TestRows<Element>* const part : {&shared_keys_, &shared_values_}) part->Add(model.shared, random);
      output_.AddNothing(model.globals + tokens_);
    }
    // ViL's table has (2 (wp + w) - 1)^2 rows, except for windows of one token.
    const int side = std::max(model.side, 1), offsets = side == 1 ? 1 : 2 * (side / 2 + side) - 1;
    std::mt19937_64 random(1);
    table_ = RandomElements<float>(random, model.heads * offsets * offsets);
    attention_ = {.attention = {.element = kTypeOf<Element>,
                                .heads = model.heads,
                                .head_width = model.head_width,
                                .scale = kScale,
                                .queries = FirstToken(queries_.Put()),
                                .keys = FirstToken(keys_.Put()),
                                .values = FirstToken(values_.Put()),
                                .shared = model.shared,
                                .shared_keys = shared_keys_.Put(),
                                .shared_values = shared_values_.Put(),
                                .output = FirstToken(output_.Put())},
                  .images = static_cast<int>(images_),
                  .image_rows = model.globals + tokens_,
                  .height = model.height,
                  .width = model.width,
                  .side = model.side,
                  .bias = WindowBias(model.bias ? arrays_.Put(table_) : nullptr, model.heads, model.side)};
  }

  // [images][globals + tokens][heads * head_width]
  std::vector<float> Run() {
    arrays_.Launch(WindowAttention2dCall(attention_));
    return output_.Get();
  }
  void Check(const std::vector<float>& output) const {
    for (int64_t image = 0; image < images_; ++image) {
      const int64_t first = image * attention_.image_rows + model_.globals;
      for (int y = 0; y < model_.height; ++y) {
        for (int x = 0; x < model_.width; ++x) {
          for (int head = 0; head < model_.heads; ++head) {
            const int64_t row = first + y * model_.width + x;
            const std::vector<double> expected =
                PlainAttention(queries_.Row(row) + head * model_.head_width, model_.head_width, kScale,
                               Seen(image, first, y, x, head));
            for (int c = 0; c < model_.head_width; ++c) {
              ASSERT_NEAR(output[row * width_ + head * model_.head_width + c], expected[c],
                          AttentionBound<Element>(expected[c]))
                  << "image " << image << ", y " << y << ", x " << x << ", head " << head << ", channel " << c;
            }
          }
        }
      }
      for (int i = 0; i < model_.globals; ++i) ASSERT_TRUE(std::isnan(output[(first - 1 - i) * width_]));
    }
  }

 private:
  static constexpr float kScale = 0.4f;

  Rows FirstToken(const Rows& rows) const {
    return {.data = static_cast<Element*>(rows.data) + model_.globals * rows.stride, .stride = rows.stride};
  }
  // The row of ViL's table (models/ops/grid_attention/grid_attention.h).
  double Bias(int head, int dy, int dx) const {
    if (!model_.bias) return 0;
    const int side = model_.side, half = side / 2;
    const int position = side == 1 ? 0 : (dy + half + side - 1) * (2 * half + side) + dx + half + side - 1;
    return table_[position * model_.heads + head];
  }
  std::vector<SeenVector> Seen(int64_t image, int64_t first, int y, int x, int head) const {
    const int channel = head * model_.head_width;
    std::vector<SeenVector> seen;
    for (int64_t i = image * model_.shared; i < (image + 1) * model_.shared; ++i) {
      seen.push_back({shared_keys_.Row(i) + channel, shared_values_.Row(i) + channel});
    }
    if (model_.side == 0) return seen;
    const int side = model_.side, margin = std::max(side / 2, 1);
    const auto is_near = [&](int from, int to) {
      const int corner = from / side * side;
      return to >= corner - margin && to < corner + side + margin;
    };
    for (int ky = 0; ky < model_.height; ++ky) {
      for (int kx = 0; kx < model_.width; ++kx) {
        if (!is_near(y, ky) || !is_near(x, kx)) continue;
        const int64_t row = first + ky * model_.width + kx;
        seen.push_back({keys_.Row(row) + channel, values_.Row(row) + channel, Bias(head, y - ky, x - kx)});
      }
    }
    return seen;
  }

  const Model model_;
  const int64_t images_;
  DeviceArrays arrays_;
  const int64_t tokens_ = int64_t{model_.height} * model_.width;
  const int64_t width_ = model_.heads * model_.head_width, stride_ = width_ + model_.padding;
  std::vector<float> table_;
  TestRows<Element> queries_{arrays_, width_, stride_}, keys_{arrays_, width_, stride_},
      values_{arrays_, width_, stride_}, shared_keys_{arrays_, width_, stride_},
      shared_values_{arrays_, width_, stride_}, output_{arrays_, width_, stride_};
  WindowAttention2d attention_ = {};
};

template <typename Element>
class GpuWindowAttention2d : public ::testing::Test {
 protected:
  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
};
using Elements = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(GpuWindowAttention2d, Elements);

TYPED_TEST(GpuWindowAttention2d, AttendsOnAnyGrid) {
  for (const Model& model : {
           Model{},                                       // no multiple of the window
           Model{.height = 8, .width = 8, .bias = true},  // a multiple
           Model{.height = 5, .width = 11, .side = 3, .bias = true},
           Model{.height = 10, .width = 9, .side = 9, .bias = true, .heads = 1},  // tiles in a window, keys in blocks
           Model{.height = 2, .width = 3, .side = 5, .shared = 0, .bias = true},  // smaller than a window
           Model{.height = 1, .width = 1, .side = 1, .shared = 0, .globals = 0},
       }) {
    Problem<TypeParam> problem(*this->device_, model, {1, 2});
    problem.Check(problem.Run());
  }
}

// A token and its eight neighbours.
TYPED_TEST(GpuWindowAttention2d, HasWindowsOfOneToken) {
  for (const bool bias : {false, true}) {
    Problem<TypeParam> problem(*this->device_, {.height = 3, .width = 4, .side = 1, .bias = bias}, {1});
    problem.Check(problem.Run());
  }
}

TYPED_TEST(GpuWindowAttention2d, NeedsNoWindowOrNoSharedVectors) {
  Problem<TypeParam> landmarks(*this->device_, {.side = 0, .shared = 70, .heads = 1}, {1, 2});
  landmarks.Check(landmarks.Run());
  Problem<TypeParam> windows(*this->device_, {.shared = 0}, {1, 2});
  windows.Check(windows.Run());
}

TYPED_TEST(GpuWindowAttention2d, MeetsPlainSumsForAnyWidthOfHead) {
  for (const int head_width : {1, 33, 64, 128}) {
    for (const int padding : {8, 1}) {
      Problem<TypeParam> problem(*this->device_,
                                 {.height = 5,
                                  .width = 5,
                                  .bias = true,
                                  .heads = head_width == 1 ? 3 : 1,
                                  .head_width = head_width,
                                  .padding = padding},
                                 {1});
      problem.Check(problem.Run());
    }
  }
}

TYPED_TEST(GpuWindowAttention2d, AnImagesBitsDependOnItOnly) {
  const Model model = {.bias = true};
  const std::vector<float> alone = Problem<TypeParam>(*this->device_, model, {7}).Run();
  const std::vector<float> together = Problem<TypeParam>(*this->device_, model, {1, 7, 2}).Run();
  for (size_t i = model.heads * model.head_width; i < alone.size(); ++i) {
    ASSERT_EQ(together[alone.size() + i], alone[i]);
  }
}

TYPED_TEST(GpuWindowAttention2d, IsTheSameInEveryOrderOfThreads) {
  std::vector<float> first;
  for (const int padding : {0, 1}) {
    for (const emulated::EmulationOptions& options : emulated::EveryOrder()) {
      SetEmulation(*this->device_, options);
      Problem<TypeParam> problem(
          *this->device_,
          {.height = 8, .width = 10, .side = 5, .bias = true, .heads = 1, .padding = padding, .globals = 0}, {3});
      const std::vector<float> output = problem.Run();
      problem.Check(output);
      if (first.empty()) first = output;
      EXPECT_EQ(output, first) << NameOf(options);
    }
  }
}

}  // namespace longshort::models::cuda::window_attention_2d_test
