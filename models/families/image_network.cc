#include "models/families/image_network.h"

#include "ATen/Functions.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {
namespace {

// Smaller images run together in a micro-batch. Most images are larger and run alone, because their tensors fill a
// core's cache.
constexpr MicroBatchWork kMicroBatchMultiplyAdds = {.min = 20'000'000, .max = 80'000'000};

// REQUIRES: Check accepts the items.
const ImageItem& ImageOf(const ClassifierItem* item) { return std::get<ImageItem>(*item); }

std::vector<const ImageItem*> ImagesOf(ServedNetwork::Items items) {
  std::vector<const ImageItem*> images;
  for (const ClassifierItem* const item : items) images.push_back(&ImageOf(item));
  return images;
}

// `first` is the first image of the batch.
absl::Status CheckImage(const ClassifierItem& item, size_t index, const ImageItem& first, int64_t channels) {
  const ImageItem* const image = std::get_if<ImageItem>(&item);
  if (image == nullptr) return absl::InvalidArgumentError(absl::StrFormat("item %d is not an image", index));
  if (image->height != first.height || image->width != first.width) {
    return absl::InvalidArgumentError(
        absl::StrFormat("image %d has %d x %d pixels (height x width), but image 0 has %d x %d; a batch has one size",
                        index, image->height, image->width, first.height, first.width));
  }
  const int64_t values = image->size();
  if (image->height < 1 || image->width < 1 || values != channels * image->height * image->width) {
    return absl::InvalidArgumentError(
        absl::StrFormat("image %d has %d values; %d channels of %d x %d pixels (height x width) are needed", index,
                        values, channels, image->height, image->width));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ImageNetwork::Check(Items items, ClassifierOutput) const {
  const ImageItem none;
  const ImageItem* const image = std::get_if<ImageItem>(items.front());
  const ImageItem& first = image == nullptr ? none : *image;
  for (size_t i = 0; i < items.size(); ++i) LS_RETURN_IF_ERROR(CheckImage(*items[i], i, first, made_for_.channels));
  return CheckSize(first.height, first.width);
}

std::vector<int64_t> ImageNetwork::Work(Items items) const {
  const ImageItem& first = ImageOf(items.front());
  return std::vector<int64_t>(items.size(), MultiplyAdds(first.height, first.width));
}

MicroBatchWork ImageNetwork::micro_batch_work() const { return kMicroBatchMultiplyAdds; }

ServedNetwork::Output ImageNetwork::Run(Items items, ClassifierOutput output) const {
  const ImageItem& first = ImageOf(items.front());
  const auto count = static_cast<int64_t>(items.size());
  const at::Tensor batch = at::empty({count, made_for_.channels, first.height, first.width}, at::kFloat);
  float* next = batch.mutable_data_ptr<float>();
  for (const ImageItem* const image : ImagesOf(items)) next = image->WriteValues(next);
  CpuItemAttention attention;
  return {.rows = Rows(batch, attention, output), .multiply_adds = BatchMultiplyAdds(items, output)};
}

int64_t ImageNetwork::BeginOn(GpuItemAttention& gpu, Items items, ClassifierOutput output) const {
  const auto layers = [this, &gpu, output](const at::Tensor& images) { return Rows(images, gpu, output); };
  gpu.BeginImages(ImagesOf(items), made_for_.channels, layers, /*prepared=*/output == ClassifierOutput::kLogits);
  return BatchMultiplyAdds(items, output);
}

absl::Status ImageNetwork::PrepareOn(GpuItemAttention& gpu) const {
  return gpu.PrepareImages(
      made_for_, [this, &gpu](const at::Tensor& images) { return Rows(images, gpu, ClassifierOutput::kLogits); });
}

at::Tensor ImageNetwork::Rows(const at::Tensor& images, ItemAttention& attention, ClassifierOutput output) const {
  const at::Tensor features = Features(images, attention);
  if (output == ClassifierOutput::kFeatures) return features.to(at::kFloat);
  const at::Tensor logits = head()(features).to(at::kFloat);
  return output == ClassifierOutput::kLogits ? logits : at::cat({logits, features.to(at::kFloat)}, 1);
}

int64_t ImageNetwork::BatchMultiplyAdds(Items items, ClassifierOutput output) const {
  const ImageItem& first = ImageOf(items.front());
  const int64_t left_out = output == ClassifierOutput::kFeatures ? head().multiply_adds() : 0;
  return static_cast<int64_t>(items.size()) * (MultiplyAdds(first.height, first.width) - left_out);
}

}  // namespace longshort::models
