// Runs batches of images as graphs of simple layers, on an emulated device.

#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/ops/item_attention/batches_on_device.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "tests/base/status_matchers.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::image_graphs_test {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr ImageShape kShape = {.channels = 3, .height = 2, .width = 4};
constexpr size_t kMaxImages = 10;  // the next smaller graph has 8

// Logits [images, 2]: the first channel's sum, and the last value.
at::Tensor Sums(const at::Tensor& images) {
  return at::stack({images.select(1, 0).flatten(1).sum(1), images.flatten(1).select(1, -1)}, 1);
}

class ImageGraphsTest : public ::testing::Test {
 protected:
  std::unique_ptr<GpuItemAttention> Make() {
    const auto open = [this]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> {
      std::unique_ptr<EmulatedDevice> opened = MakeEmulatedDevice();
      device_ = opened.get();
      return opened;
    };
    return MakeGpuItemAttention({.tensors = at::kCPU, .open = open, .loss = nullptr, .graphs = {.images = kMaxImages}},
                                128)
        .value();
  }
  // Images of bytes, whose values begin in each channel where the other's end.
  static std::vector<ImageItem> ImagesOfBytes(size_t count) {
    std::vector<float> values(kShape.channels * 256);
    std::iota(values.begin(), values.end(), 1.0F);
    const auto shared = std::make_shared<const std::vector<float>>(std::move(values));
    std::vector<ImageItem> images;
    for (size_t i = 0; i < count; ++i) {
      ImageItem& image = images.emplace_back();
      image = {.height = kShape.height,
               .width = kShape.width,
               .values = {},
               .bytes = std::vector<uint8_t>(kShape.values()),
               .values_of_bytes = shared};
      std::iota(image.bytes.begin(), image.bytes.end(), static_cast<uint8_t>(200 + 10 * i));
    }
    return images;
  }
  // `count` images with distinct values.
  static std::vector<ImageItem> Images(size_t count, const ImageShape& shape = kShape) {
    std::vector<ImageItem> images;
    for (size_t i = 0; i < count; ++i) {
      ImageItem& image = images.emplace_back();
      image = {.height = shape.height, .width = shape.width, .values = std::vector<float>(shape.values())};
      std::iota(image.values.begin(), image.values.end(), static_cast<float>(100 * (i + count)));
    }
    return images;
  }
  static void ExpectSums(GpuItemAttention& attention, const std::vector<ImageItem>& images,
                         const GpuItemAttention::ImageLayers& layers) {
    EXPECT_THAT(attention.RunImages(PointersTo(images), kShape.channels, layers, /*prepared=*/true),
                ElementsAreArray(SumsOf(images)))
        << images.size();
  }
  static std::vector<const ImageItem*> PointersTo(const std::vector<ImageItem>& images) {
    std::vector<const ImageItem*> pointers;
    for (const ImageItem& image : images) pointers.push_back(&image);
    return pointers;
  }
  // What Sums computes.
  static std::vector<float> SumsOf(const std::vector<ImageItem>& images) {
    std::vector<float> sums;
    for (const ImageItem& image : images) {
      std::vector<float> values(image.size());
      image.WriteValues(values.data());
      sums.push_back(std::accumulate(values.begin(), values.begin() + image.height * image.width, 0.0F));
      sums.push_back(values.back());
    }
    return sums;
  }

  EmulatedDevice* device_ = nullptr;
};

TEST_F(ImageGraphsTest, RunABatchOfAnyNumberThatHasRoomInOne) {
  const std::unique_ptr<GpuItemAttention> attention = Make();
  ASSERT_THAT(attention->PrepareImages(kShape, Sums), IsOk());
  const auto never = [](const at::Tensor&) -> at::Tensor { throw std::logic_error("a graph runs this batch"); };
  int64_t replays = device_->replays();
  EXPECT_EQ(replays, 9);  // of 10, 8, 7, ... 1 images
  // The last batch has 9 images, and is padded with a leftover of the first batch.
  for (const size_t count : {10u, 1u, 8u, 3u, 9u}) {
    ExpectSums(*attention, Images(count), never);
    EXPECT_EQ(device_->replays(), ++replays);
  }
}

TEST_F(ImageGraphsTest, TakeTheMemoryThatIsPlanned) {
  const std::unique_ptr<GpuItemAttention> attention = Make();
  const int64_t free = device_->free_bytes();
  ASSERT_THAT(attention->PrepareImages(kShape, Sums), IsOk());
  const int64_t taken = free - device_->free_bytes(), planned = ImageGraphBytes({.images = kMaxImages}, kShape, 2);
  EXPECT_GE(taken, planned);
  EXPECT_LE(taken, planned + 2 * 512) << "an upload and logits begin at multiples of 256, with a strip between";
}

TEST_F(ImageGraphsTest, RunBatchesOfBytesAndOfValuesInTurn) {
  const std::unique_ptr<GpuItemAttention> attention = Make();
  ASSERT_THAT(attention->PrepareImages(kShape, Sums), IsOk());
  int64_t replays = device_->replays();
  std::vector<ImageItem> both = ImagesOfBytes(2), others = ImagesOfBytes(1);
  both.push_back(Images(1).front());
  ASSERT_NE(both.front().values_of_bytes, others.front().values_of_bytes);
  others.push_back(both.front());
  for (const std::vector<ImageItem>& images : {ImagesOfBytes(3), Images(3), both, ImagesOfBytes(1), others}) {
    ExpectSums(*attention, images, Sums);
    EXPECT_EQ(device_->replays(), ++replays);
  }
  ExpectSums(*attention, ImagesOfBytes(kMaxImages + 1), Sums);  // without a graph
}

TEST_F(ImageGraphsTest, ABatchIsPackedAndUploadedBeforeTheOneBeforeHasRun) {
  const std::unique_ptr<GpuItemAttention> attention = Make();
  ASSERT_THAT(attention->PrepareImages(kShape, Sums), IsOk());
  // Both batches have memory for their rows now.
  for (int i = 0; i < 2; ++i) ExpectSums(*attention, Images(10), Sums);
  const int64_t replays = device_->replays();
  // The host packs it, and does not keep it.
  const auto begin = [&](const std::vector<ImageItem>& images) {
    const int64_t before = device_->calls();
    attention->BeginImages(PointersTo(images), kShape.channels, Sums, /*prepared=*/true);
    EXPECT_GE(device_->calls(), before + 3) << "an upload, a run, and a copy of the rows";
  };
  begin(Images(10));
  begin(ImagesOfBytes(3));
  EXPECT_EQ(device_->replays(), replays) << "nothing has waited for the device";
  for (int64_t run = 1; run <= 4; ++run) {
    EXPECT_THAT(attention->FinishBatch(), ElementsAreArray(SumsOf(run % 2 == 1 ? Images(10) : ImagesOfBytes(3))))
        << run;
    EXPECT_EQ(device_->replays(), replays + run) << "the batch behind it has not run";
    if (run <= 2) begin(run % 2 == 1 ? Images(10) : ImagesOfBytes(3));
  }
}

TEST_F(ImageGraphsTest, LeaveLargerBatchesAndOtherSizesToTheLayers) {
  const std::unique_ptr<GpuItemAttention> attention = Make();
  ASSERT_THAT(attention->PrepareImages(kShape, Sums), IsOk());
  const int64_t replays = device_->replays();
  const auto run = [&](const std::vector<ImageItem>& images) {
    int64_t calls = 0;
    ExpectSums(*attention, images, [&](const at::Tensor& on_device) {
      ++calls;
      return Sums(on_device);
    });
    EXPECT_EQ(calls, 1);
  };
  run(Images(kMaxImages + 1));
  run(Images(2, {.channels = 3, .height = 4, .width = 2}));
  EXPECT_EQ(device_->replays(), replays);
  // The larger batch has not taken the graphs' memory away.
  ExpectSums(*attention, Images(5), Sums);
  EXPECT_EQ(device_->replays(), replays + 1);
}

TEST_F(ImageGraphsTest, AreNotThereAfterAnyFaultOfTheirMaking) {
  int64_t call = 0;
  for (;; ++call) {
    const std::unique_ptr<GpuItemAttention> attention = Make();
    device_->FailAfter(call, DeviceFault::kOutOfMemory);
    const absl::Status status = attention->PrepareImages(kShape, Sums);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
    const int64_t replays = device_->replays();
    ExpectSums(*attention, Images(2), Sums);
    EXPECT_EQ(device_->replays(), replays);
  }
  EXPECT_GT(call, 30);
}

TEST_F(ImageGraphsTest, ReportWhatLayersThrow) {
  const auto throws = [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no such layer"); };
  EXPECT_THAT(Make()->PrepareImages(kShape, throws).ToString(), HasSubstr("INTERNAL"));
  EXPECT_THAT(Make()->PrepareImages(kShape, throws).ToString(), HasSubstr("no such layer"));
  // Other logits in the graph than in the run before it.
  int64_t calls = 0;
  const auto changes = [&](const at::Tensor& images) { return at::zeros({images.size(0), 2 + calls++}); };
  EXPECT_THAT(Make()->PrepareImages(kShape, changes).ToString(), HasSubstr("INTERNAL"));
}

}  // namespace longshort::models::image_graphs_test
