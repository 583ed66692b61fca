// Invalid arguments of a GPU's ItemAttention, and how it reports a lost GPU.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "c10/util/Exception.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::gpu_item_attention_refusals_test {

constexpr int64_t kHeads = 2, kWidth = 16, kTokens = 4, kImages = 2;

class GpuItemAttentionRefusals : public ::testing::Test {
 protected:
  GpuItemAttentionRefusals() {
    loss_->SetListener([this](const std::string& why) { losses_.push_back(why); });
    const auto open = [this]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> {
      std::unique_ptr<EmulatedDevice> opened = MakeEmulatedDevice();
      device_ = opened.get();
      return opened;
    };
    attention_ = MakeGpuItemAttention({.tensors = at::kCPU, .open = open, .loss = loss_, .graphs = {.images = 1}},
                                      kWidth / kHeads)
                     .value();
  }

  // Rows of images, with `apart` rows from one image's first row to the next image's.
  static at::Tensor Rows(int64_t apart = kTokens) { return at::zeros({kImages, apart, kWidth}).narrow(1, 0, kTokens); }
  static RowsToAttend Attend() {
    return {.heads = kHeads,
            .queries = Rows(),
            .tokens = {.keys = Rows(), .values = Rows()},
            .shared = {.keys = at::zeros({kImages, 2, kWidth}), .values = at::zeros({kImages, 2, kWidth})}};
  }
  void AttendInGrids(const RowsToAttend& rows, int64_t others = 0) const {
    attention_->AttendInGrids(rows, {.height = 2, .width = 2}, {.side = 2}, /*bias=*/{}, others);
  }

  const std::shared_ptr<GpuLoss> loss_ = std::make_shared<GpuLoss>();
  std::vector<std::string> losses_;
  EmulatedDevice* device_ = nullptr;
  std::unique_ptr<GpuItemAttention> attention_;
};

TEST_F(GpuItemAttentionRefusals, ImagesThatAreNotAsFarApartAsTheQueries) {
  AttendInGrids(Attend());
  EXPECT_THROW(AttendInGrids(Attend(), /*others=*/1), c10::Error);
  RowsToAttend rows = Attend();
  rows.queries = Rows(kTokens + 1);
  EXPECT_THROW(AttendInGrids(rows), c10::Error);
  rows = Attend();
  rows.tokens.values = Rows(kTokens + 1);
  EXPECT_THROW(AttendInGrids(rows), c10::Error);
}

TEST_F(GpuItemAttentionRefusals, SharedVectorsThatAreNotBesideEachOther) {
  RowsToAttend rows = Attend();
  rows.shared.keys = at::zeros({kImages, 3, kWidth}).narrow(1, 0, 2);
  EXPECT_THROW(AttendInGrids(rows), c10::Error);
}

TEST_F(GpuItemAttentionRefusals, TapsThatAreNotOfTheValuesType) {
  for (const at::Tensor& taps : {at::zeros({kHeads, 3}, at::kBFloat16), at::zeros({3, kHeads}).t()}) {
    const RowsToConvolve rows = {
        .heads = kHeads, .taps = taps, .values = at::zeros({1, kWidth}), .sums = at::zeros({1, kWidth})};
    EXPECT_THROW(attention_->ConvolveValues(rows), c10::Error);
  }
}

TEST_F(GpuItemAttentionRefusals, AGpuThatIsLostWhileGraphsAreMadeIsReported) {
  device_->FailAfter(0, DeviceFault::kLost);
  const auto layers = [](const at::Tensor& images) { return images.flatten(1); };
  EXPECT_EQ(attention_->PrepareImages({.channels = 1, .height = 2, .width = 2}, layers).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(losses_.size(), 1u);
}

// LibTorch throws before any call of the device reports it.
TEST_F(GpuItemAttentionRefusals, AGpuThatIsLostInACallOfLibTorchIsReported) {
  const auto layers = [this](const at::Tensor&) -> at::Tensor {
    device_->FailAfter(0, DeviceFault::kLost);
    device_->Synchronize().IgnoreError();
    throw std::runtime_error("CUDA error: unspecified launch failure");
  };
  const ImageItem image = {.height = 2, .width = 2, .values = std::vector<float>(4)};
  EXPECT_THROW(attention_->RunImages({&image}, 1, layers, /*prepared=*/false), std::runtime_error);
  EXPECT_EQ(losses_.size(), 1u);
}

TEST_F(GpuItemAttentionRefusals, AnExceptionOfLibTorchIsNoLoss) {
  const auto layers = [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no such layer"); };
  const ImageItem image = {.height = 2, .width = 2, .values = std::vector<float>(4)};
  EXPECT_THROW(attention_->RunImages({&image}, 1, layers, /*prepared=*/false), std::runtime_error);
  EXPECT_EQ(losses_.size(), 0u);
}

}  // namespace longshort::models::gpu_item_attention_refusals_test
