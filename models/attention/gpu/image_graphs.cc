#include "models/attention/gpu/image_graphs.h"

#include <algorithm>
#include <exception>

#include "ATen/Functions.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/layers/library_error.h"
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
  layers_ = layers;
  const auto capture_all = [this]() -> absl::Status {
    for (const int64_t images : kImages) {
      if (images <= most_images_) LS_RETURN_IF_ERROR(CaptureOne(images));
    }
    return absl::OkStatus();
  };
  const absl::Status status = capture_all();
  if (status.ok()) return status;
  device_.Synchronize().IgnoreError();
  graphs_.clear();
  return status;
}

absl::Status ImageGraphs::CaptureOne(int64_t images) {
  if (graphs_.empty()) LS_RETURN_IF_ERROR(UploadZeros(images));
  ImageGraph* const graph = graphs_.emplace_back(std::make_unique<ImageGraph>()).get();
  graph->images = ImagesIn(upload_, images, shape_, tensors_);
  // What libraries do at a first run cannot be captured.
  LS_ASSIGN_OR_RETURN(const at::Tensor first, RunLayers(graph->images));
  if (logits_.bytes() == 0) {
    LS_ASSIGN_OR_RETURN(logits_, GpuMemory::OnDevice(device_, first.nbytes(), GpuMemoryUse::kLibraryToo));
  }
  graph->logits = at::from_blob(logits_.data(), first.sizes(), first.options());
  LS_ASSIGN_OR_RETURN(graph->graph, device_.Capture([this, graph]() -> absl::Status {
    const c10::InferenceMode inference;  // a device on the processor calls this when it runs what is queued
    LS_ASSIGN_OR_RETURN(const at::Tensor logits, RunLayers(graph->images));
    graph->logits.copy_(logits);
    return absl::OkStatus();
  }));
  // A graph's first run takes longer than the others.
  LS_RETURN_IF_ERROR(device_.Replay(*graph->graph));
  return device_.Synchronize();
}

absl::Status ImageGraphs::UploadZeros(int64_t images) {
  const size_t values = images * shape_.values();
  LS_RETURN_IF_ERROR(upload_.Reserve(values * sizeof(float)));
  LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(values * sizeof(float)));
  std::fill_n(reinterpret_cast<float*>(host), values, 0.0F);
  LS_RETURN_IF_ERROR(upload_.Queue());
  return device_.BeforeLibraryCalls();
}

absl::StatusOr<at::Tensor> ImageGraphs::RunLayers(const at::Tensor& images) const {
  try {
    const c10::InferenceMode inference;
    return layers_(images);
  } catch (const std::exception& error) {
    return LibraryError("on a batch that a graph is made of", error);
  }
}

ImageGraph* ImageGraphs::Find(const ImageShape& shape, size_t images) const {
  if (shape != shape_) return nullptr;
  // The largest is the first.
  const auto found = std::find_if(graphs_.rbegin(), graphs_.rend(), [images](const auto& graph) {
    return static_cast<size_t>(graph->images.size(0)) >= images;
  });
  return found == graphs_.rend() ? nullptr : found->get();
}

absl::Status ImageGraphs::Run(ImageGraph& graph, absl::Span<const ImageItem* const> images, float* logits) {
  LS_ASSIGN_OR_RETURN(char* const host, upload_.Begin(images.size() * shape_.values() * sizeof(float)));
  StageImages(images, reinterpret_cast<float*>(host));
  LS_RETURN_IF_ERROR(upload_.Queue());
  LS_RETURN_IF_ERROR(device_.Replay(*graph.graph));
  LS_RETURN_IF_ERROR(device_.Copy(logits, logits_.data(), images.size() * graph.classes() * sizeof(float)));
  return device_.Synchronize();
}

}  // namespace longshort
