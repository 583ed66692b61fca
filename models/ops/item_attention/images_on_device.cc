#include "models/ops/item_attention/images_on_device.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"

namespace longshort::models {
namespace {

// A thread copies this many numbers in the time that it takes to start.
constexpr int64_t kMinValues = 1 << 16;

}  // namespace

std::vector<ImageBatchShape> ImageBuckets(const GraphLimits& limits, const ImageShape& image) {
  std::vector<ImageBatchShape> buckets;
  for (const int64_t images : kImageBuckets) {
    if (images <= limits.images) buckets.push_back({.image = image, .images = images});
  }
  return buckets;
}

int64_t ImageGraphBytes(const GraphLimits& limits, int64_t image_values, int64_t classes) {
  return limits.images * (image_values + classes) * static_cast<int64_t>(sizeof(float));
}

void StageImages(absl::Span<const ImageItem* const> images, char* to) {
  const auto values = static_cast<int64_t>(images.front()->values.size());
  const int64_t grain = std::max<int64_t>(1, kMinValues / values);
  float* const floats = reinterpret_cast<float*>(to);
  at::parallel_for(0, static_cast<int64_t>(images.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy(images[i]->values.begin(), images[i]->values.end(), floats + i * values);
    }
  });
}

at::Tensor ImagesIn(char* memory, const ImageBatchShape& shape, at::Device device) {
  return at::from_blob(memory, {shape.images, shape.image.channels, shape.image.height, shape.image.width},
                       at::TensorOptions(at::kFloat).device(device));
}

}  // namespace longshort::models
