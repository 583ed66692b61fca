#include "models/attention/image_graphs.h"

#include <algorithm>
#include <utility>

#include "ATen/Functions.h"
#include "base/status_macros.h"
#include "models/layers/parallel_for.h"

namespace longshort {
namespace {

// The largest first: what LibTorch reserves for it is enough for the others, which have it in turn. A batch is padded
// by less than a fifth of itself.
constexpr int64_t kImages[] = {32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1};

// A thread copies so many numbers in the time that it takes to start.
constexpr int64_t kLeastValues = 1 << 16;

}  // namespace

void StageImages(absl::Span<const ImageItem* const> images, float* to) {
  const auto values = static_cast<int64_t>(images.front()->values.size());
  const int64_t grain = std::max<int64_t>(1, kLeastValues / values);
  at::parallel_for(0, static_cast<int64_t>(images.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::copy(images[i]->values.begin(), images[i]->values.end(), to + i * values);
  });
}

at::Tensor ImagesIn(const GpuUpload& upload, int64_t count, const ImageShape& shape, at::Device device) {
  return at::from_blob(upload.as<float>(), {count, shape.channels, shape.height, shape.width},
                       at::TensorOptions(at::kFloat).device(device));
}

absl::Status ImageGraphs::Capture(const ImageShape& shape, const ItemAttention::ImageLayers& layers) {
  shape_ = shape;
  std::vector<BatchGraph> graphs;
  for (const int64_t images : kImages) {
    if (images > most_images_) continue;
    if (graphs.empty()) LS_RETURN_IF_ERROR(UploadZeros(images));
    const at::Tensor batch = ImagesIn(upload_, images, shape, tensors_);
    LS_ASSIGN_OR_RETURN(graphs.emplace_back(), CaptureBatch(
                                                   device_, [layers, batch] { return layers(batch); }, logits_));
  }
  graphs_ = std::move(graphs);
  return absl::OkStatus();
}

absl::Status ImageGraphs::UploadZeros(int64_t images) {
  const size_t values = images * shape_.values();
  LS_RETURN_IF_ERROR(upload_.Reserve(values * sizeof(float)));
  LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(values * sizeof(float)));
  std::fill_n(reinterpret_cast<float*>(host), values, 0.0F);
  LS_RETURN_IF_ERROR(upload_.Queue());
  return device_.BeforeLibraryCalls();
}

BatchGraph* ImageGraphs::Find(const ImageShape& shape, size_t images) {
  if (shape != shape_) return nullptr;
  const auto found = std::find_if(graphs_.rbegin(), graphs_.rend(), [images](const BatchGraph& graph) {
    return static_cast<size_t>(graph.items()) >= images;
  });
  return found == graphs_.rend() ? nullptr : &*found;
}

absl::Status ImageGraphs::Run(BatchGraph& graph, absl::Span<const ImageItem* const> images, float* logits) {
  LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(images.size() * shape_.values() * sizeof(float)));
  StageImages(images, reinterpret_cast<float*>(host));
  LS_RETURN_IF_ERROR(upload_.Queue());
  return RunBatch(device_, graph, static_cast<int64_t>(images.size()), logits);
}

}  // namespace longshort
