#include "models/ops/item_attention/gpu_item_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "base/status_macros.h"
#include "c10/util/Exception.h"
#include "models/device/gpu_memory.h"
#include "models/device/graph_cache.h"
#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "models/ops/item_attention/batches_on_device.h"
#include "models/ops/landmarks/landmarks_kernels.h"
#include "models/ops/products/linear_maps.h"
#include "models/ops/rows/many_norms.h"
#include "models/ops/rows/rows.h"
#include "models/ops/rows/token_embeddings.h"

namespace longshort::models {
namespace {

cuda::ElementType ElementOf(const at::Tensor& rows) {
  if (rows.scalar_type() == at::kFloat) return cuda::ElementType::kFloat;
  TORCH_CHECK(rows.scalar_type() == at::kBFloat16, "rows of ", rows.scalar_type(),
              "; the kernels support float and bfloat16");
  return cuda::ElementType::kBFloat16;
}

// The rows of items; for images, beginning with the first image's first row.
cuda::Rows RowsOf(const at::Tensor& rows) {
  return {.data = const_cast<void*>(rows.const_data_ptr()), .stride = rows.stride(rows.dim() == 3 ? 1 : 0)};
}
// Vectors [items, m, d].
cuda::Rows VectorsOf(const at::Tensor& vectors) {
  TORCH_CHECK(vectors.size(1) <= 1 || vectors.is_contiguous(), "the items' shared vectors are not contiguous");
  return {.data = const_cast<void*>(vectors.const_data_ptr()), .stride = vectors.stride(vectors.size(1) == 1 ? 0 : 1)};
}
// For images [images, tokens, d]: rows from one image's first token to the next image's.
int64_t ImageRows(const at::Tensor& rows) { return rows.size(0) == 1 ? rows.size(1) : rows.stride(0) / rows.stride(1); }
void CheckImageRows(const at::Tensor& rows, int64_t image_rows) {
  TORCH_CHECK(rows.size(0) == 1 || rows.stride(0) == image_rows * rows.stride(1), "images are ", rows.stride(0),
              " elements apart, not ", image_rows, " rows of ", rows.stride(1));
}

cuda::NormWeights WeightsOf(const LayerNorm& norm) {
  return {.gain = norm.gain.const_data_ptr<float>(), .bias = norm.bias.const_data_ptr<float>()};
}

// All rows [..., d] as one matrix, copied if they are not equally far apart.
at::Tensor MatrixOf(const at::Tensor& rows) { return (rows.stride(-1) == 1 ? rows : rows.contiguous()).flatten(0, -2); }

int HeadWidth(const at::Tensor& rows, int64_t heads) { return static_cast<int>(rows.size(-1) / heads); }
float ScaleOf(int head_width) { return static_cast<float>(1 / std::sqrt(static_cast<double>(head_width))); }

cuda::RowAttention RowAttentionOf(const RowsToAttend& rows, const at::Tensor& attended) {
  const int head_width = HeadWidth(rows.queries, rows.heads);
  return {.element = ElementOf(rows.queries),
          .heads = static_cast<int>(rows.heads),
          .head_width = head_width,
          .scale = ScaleOf(head_width),
          .queries = RowsOf(rows.queries),
          .keys = RowsOf(rows.tokens.keys),
          .values = RowsOf(rows.tokens.values),
          .shared = static_cast<int>(rows.shared.keys.size(1)),
          .shared_keys = VectorsOf(rows.shared.keys),
          .shared_values = VectorsOf(rows.shared.values),
          .output = RowsOf(attended)};
}

class KernelAttention final : public GpuItemAttention {
 public:
  KernelAttention(const ModelGpu& gpu, std::unique_ptr<GpuDevice> device)
      : tensors_(gpu.tensors),
        limits_(gpu.graphs),
        device_(gpu, std::move(device)),
        upload_(*device_),
        document_graphs_(*device_),
        image_graphs_(*device_) {}
  ~KernelAttention() override {
    // Queued work uses memory that is freed now. A lost device has no queued work.
    device_->Synchronize().IgnoreError();
  }

  void BeginDocuments(const PackedIds& packed, const DocumentLayers& layers, bool prepared) override;
  absl::Span<const float> FinishBatch() override;
  absl::Status PrepareDocuments(int64_t item_documents, const WindowRule& windows,
                                const DocumentLayers& layers) override;
  void BeginImages(absl::Span<const ImageItem* const> images, int64_t channels, const ImageLayers& layers,
                   bool prepared) override;
  absl::Status PrepareImages(const ImageShape& shape, const ImageLayers& layers) override;

  at::Tensor AttendInDocuments(const RowsToAttend& rows, int64_t others) override;
  at::Tensor AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                           const WindowBias& bias, int64_t others) override;
  RowKeyValues Landmarks(const RowsToCompress& rows, const RowKeyValues& before) override;
  void AttendToRows(const OwnRowsToAttend& rows) override;
  void ConvolveValues(const RowsToConvolve& rows) override;
  at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) override;
  at::Tensor Embed(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& position_table,
                   const at::Tensor& positions) override;
  at::Tensor Add(const Linear& map, const at::Tensor& inputs, const at::Tensor& rows) override {
    return Mapped(map, inputs, cuda::RowActivation::kNone, MatrixOf(rows));
  }
  at::Tensor Gelu(const Linear& map, const at::Tensor& inputs) override {
    return Mapped(map, inputs, cuda::RowActivation::kGelu, /*addend=*/{});
  }
  at::Tensor Norm(const LayerNorm& norm, const at::Tensor& rows) override;
  at::Tensor NormBehind(const at::Tensor& others, const LayerNorm& norm, const at::Tensor& rows) override;
  RowKeyValues NormBoth(const LayerNorm& key_norm, const LayerNorm& value_norm, const RowKeyValues& rows) override;

 private:
  // A batch on the device.
  struct BegunBatch {
    absl::Span<const float> rows;  // on the host, valid once `end` has been waited for
    std::unique_ptr<GpuEvent> end;
  };
  // The items of a call's rows.
  struct Items {
    int count = 0;
    int64_t max_rows = 0;
    cuda::ItemRanges ranges;
  };

  // Host memory for the upload of a batch.
  char* BeginUpload(size_t bytes) {
    const absl::StatusOr<char*> memory = upload_.Begin(bytes);
    device_.ThrowUnlessOk(memory.status());
    return *memory;
  }
  void Upload() {
    device_.ThrowUnlessOk(upload_.Queue());
    device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  }
  // Pinned memory for the rows of the batch that begins, `count` numbers. Its last batch is finished.
  float* HostRows(int64_t count) {
    GpuMemory& memory = host_rows_[turn_ % kBatchesAtOnce];
    const size_t bytes = count * sizeof(float);
    if (memory.bytes() < bytes) {
      device_.ThrowUnlessOk(device_->Synchronize());  // a batch that failed may have left a copy to it
      absl::StatusOr<GpuMemory> larger = GpuMemory::Pinned(*device_, std::max(bytes, 2 * memory.bytes()));
      device_.ThrowUnlessOk(larger.status());
      memory = *std::move(larger);
    }
    return memory.as<float>();
  }
  // The batch has begun, and its `count` numbers come to `rows`, which is HostRows.
  void EndBegin(const float* rows, int64_t count) {
    absl::StatusOr<std::unique_ptr<GpuEvent>> end = device_->Record();
    device_.ThrowUnlessOk(end.status());
    begun_.push_back({.rows = {rows, static_cast<size_t>(count)}, .end = *std::move(end)});
    ++turn_;
  }
  void CopyRows(const at::Tensor& rows) {
    float* const on_host = HostRows(rows.numel());
    at::from_blob(on_host, rows.sizes(), at::kFloat).copy_(rows, /*non_blocking=*/true);
    EndBegin(on_host, rows.numel());
  }
  // Runs the layers on these documents of the upload, which are the current batch from now on.
  at::Tensor RunLayers(const DocumentsOnDevice& documents, const WindowRule& windows, const DocumentLayers& layers) {
    documents_ = documents;
    places_ = DocumentPlaces(documents.shape, tensors_);
    device_.Launch(places_.Call(documents, windows));
    device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
    return layers(TokensOf(documents, places_, tensors_));
  }
  // Runs the layers on the images of an upload.
  at::Tensor RunLayers(const char* memory, const ImageBatchShape& shape, const ImageLayers& layers) {
    const at::Tensor values = at::empty({shape.images, shape.image.channels, shape.image.height, shape.image.width},
                                        device_.Options(at::kFloat));
    device_.Launch(ReadImages(memory, shape, values));
    device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
    return layers(values);
  }
  const cuda::DocumentTile* Tiles() const {
    return reinterpret_cast<const cuda::DocumentTile*>(places_.tiles.const_data_ptr<int64_t>());
  }
  Items ItemsOf(const at::Tensor& rows) const {
    if (rows.dim() == 2) {
      return {.count = static_cast<int>(documents_.shape.documents),
              .max_rows = documents_.shape.max_rows,
              .ranges = documents_.ranges};
    }
    return {.count = static_cast<int>(rows.size(0)),
            .max_rows = rows.size(1),
            .ranges = {.each = nullptr, .step = ImageRows(rows), .rows = rows.size(1)}};
  }
  // Returns activation(map(inputs)) + addend; without an addend if it is undefined.
  at::Tensor Mapped(const Linear& map, const at::Tensor& inputs, cuda::RowActivation activation,
                    const at::Tensor& addend) const;
  void NormTo(const at::Tensor& normed, const LayerNorm& norm, const at::Tensor& rows) const;
  // For partial results.
  at::Tensor Workspace(at::IntArrayRef shape) const { return at::empty(shape, device_.Options(at::kFloat)); }

  const at::Device tensors_;
  const GraphLimits limits_;
  WorkerGpu device_;
  GpuUpload upload_;
  // The current batch:
  DocumentsOnDevice documents_;
  DocumentPlaces places_;
  GraphCache<DocumentShape> document_graphs_;
  GraphCache<ImageBatchShape> image_graphs_;
  std::deque<BegunBatch> begun_;                     // at most kBatchesAtOnce
  std::array<GpuMemory, kBatchesAtOnce> host_rows_;  // pinned, of the batches in turn
  size_t turn_ = 0;
};

absl::Span<const float> KernelAttention::FinishBatch() {
  const BegunBatch batch = std::move(begun_.front());
  begun_.pop_front();
  device_.ThrowUnlessOk(device_->Wait(*batch.end));
  return batch.rows;
}

void KernelAttention::BeginDocuments(const PackedIds& packed, const DocumentLayers& layers, bool prepared) {
  const DocumentArrays documents(packed);
  const DocumentShape& shape = documents.shape();
  if (auto* const graph = prepared ? document_graphs_.Find(shape) : nullptr) {
    const int64_t item_documents = graph->bucket.documents / graph->batch.items();
    const int64_t items = shape.documents / item_documents;
    float* const logits = HostRows(items * graph->batch.classes());
    device_.ThrowUnlessOk(document_graphs_.Queue(
        *graph, documents.UploadBytes(graph->bucket), [&](char* to) { documents.Write(graph->bucket, to); }, items,
        logits));
    return EndBegin(logits, items * graph->batch.classes());
  }
  documents.Write(shape, BeginUpload(documents.UploadBytes(shape)));
  Upload();
  device_.Run([&] { CopyRows(RunLayers(DocumentsIn(upload_.as<char>(), shape), packed.windows, layers)); });
}

absl::Status KernelAttention::PrepareDocuments(int64_t item_documents, const WindowRule& windows,
                                               const DocumentLayers& layers) {
  const PackedIds none;
  const auto write = [&none](const DocumentShape& bucket, char* to) { DocumentArrays(none).Write(bucket, to); };
  const auto bind = [&](const DocumentShape& bucket, char* memory) {
    return [this, layers, windows, documents = DocumentsIn(memory, bucket)] {
      return RunLayers(documents, windows, layers);
    };
  };
  return device_.ReportLoss(document_graphs_.Capture(DocumentBuckets(limits_, item_documents), write, bind));
}

void KernelAttention::BeginImages(absl::Span<const ImageItem* const> images, int64_t channels,
                                  const ImageLayers& layers, bool prepared) {
  const ImagesToUpload batch(images, channels);
  const ImageBatchShape& shape = batch.shape();
  if (auto* const graph = prepared ? image_graphs_.Find(shape) : nullptr) {
    float* const logits = HostRows(shape.images * graph->batch.classes());
    device_.ThrowUnlessOk(image_graphs_.Queue(
        *graph, batch.UploadBytes(), [&](char* to) { batch.Write(to); }, shape.images, logits));
    return EndBegin(logits, shape.images * graph->batch.classes());
  }
  batch.Write(BeginUpload(batch.UploadBytes()));
  Upload();
  device_.Run([&] { CopyRows(RunLayers(upload_.as<char>(), shape, layers)); });
}

absl::Status KernelAttention::PrepareImages(const ImageShape& shape, const ImageLayers& layers) {
  const auto write = [](const ImageBatchShape& bucket, char* to) { std::fill_n(to, bucket.bytes(), 0); };
  const auto bind = [&](const ImageBatchShape& bucket, char* memory) {
    return [this, layers, bucket, memory] { return RunLayers(memory, bucket, layers); };
  };
  return device_.ReportLoss(image_graphs_.Capture(ImageBuckets(limits_, shape), write, bind));
}

at::Tensor KernelAttention::AttendInDocuments(const RowsToAttend& rows, int64_t others) {
  const int64_t tokens = rows.queries.size(0);
  const at::Tensor all = at::empty({others + tokens, rows.queries.size(1)}, rows.queries.options());
  if (tokens == 0) return all;
  const at::Tensor attended = all.narrow(0, others, tokens);
  device_.Launch(cuda::DocumentAttentionCall(
      {.attention = RowAttentionOf(rows, attended),
       .tiles = Tiles(),
       .tile_count = static_cast<int>(documents_.shape.tiles),
       .windows = reinterpret_cast<const cuda::WindowRows*>(places_.windows.const_data_ptr<int64_t>())}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return all;
}

at::Tensor KernelAttention::AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                                          const WindowBias& bias, int64_t others) {
  const int64_t images = rows.queries.size(0), image_rows = ImageRows(rows.queries), tokens = grid.tokens();
  const at::Tensor all = at::empty({images, others + tokens, rows.queries.size(2)}, rows.queries.options());
  const at::Tensor attended = all.narrow(1, others, tokens);
  for (const at::Tensor& part : {rows.tokens.keys, rows.tokens.values, attended}) CheckImageRows(part, image_rows);
  const auto side = static_cast<int>(window.side), heads = static_cast<int>(rows.heads);
  device_.Launch(cuda::WindowAttention2dCall(
      {.attention = RowAttentionOf(rows, attended),
       .images = static_cast<int>(images),
       .image_rows = image_rows,
       .height = static_cast<int>(grid.height),
       .width = static_cast<int>(grid.width),
       .side = side,
       .bias = cuda::WindowBias(bias.table.defined() ? bias.table.const_data_ptr<float>() : nullptr, heads, side)}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return all;
}

RowKeyValues KernelAttention::Landmarks(const RowsToCompress& rows, const RowKeyValues& before) {
  const int64_t others = before.keys.defined() ? 1 : 0;
  const Items items = ItemsOf(rows.logits);
  if (rows.logits.dim() == 3) {
    for (const at::Tensor& part : {rows.tokens.keys, rows.tokens.values}) CheckImageRows(part, items.ranges.step);
  }
  const int64_t rank = rows.logits.size(-1) / rows.heads, splits = cuda::LandmarkSplitsOf(items.max_rows);
  const int head_width = HeadWidth(rows.tokens.keys, rows.heads);
  const at::Tensor keys =
      at::empty({items.count, others + rank, rows.tokens.keys.size(-1)}, rows.tokens.keys.options());
  const at::Tensor values = at::empty_like(keys);
  const at::Tensor outputs = Workspace({items.count, splits, 2, rank, rows.heads, cuda::PaddedHeadWidth(head_width)});
  const at::Tensor sums = Workspace({items.count, splits, rank, rows.heads, 2});
  const cuda::Landmarks landmarks = {.element = ElementOf(keys),
                                     .heads = static_cast<int>(rows.heads),
                                     .head_width = head_width,
                                     .rank = static_cast<int>(rank),
                                     .items = items.count,
                                     .max_splits = static_cast<int>(splits),
                                     .ranges = items.ranges,
                                     .logits = RowsOf(rows.logits),
                                     .keys = RowsOf(rows.tokens.keys),
                                     .values = RowsOf(rows.tokens.values),
                                     .key_norm = WeightsOf(rows.key_norm),
                                     .value_norm = WeightsOf(rows.value_norm),
                                     .epsilon = static_cast<float>(rows.key_norm.epsilon),
                                     .keys_before = others > 0 ? RowsOf(before.keys) : cuda::Rows{},
                                     .values_before = others > 0 ? RowsOf(before.values) : cuda::Rows{},
                                     .norms_before = rows.norms_before,
                                     .landmark_keys = RowsOf(keys),
                                     .landmark_values = RowsOf(values),
                                     .partial_outputs = outputs.mutable_data_ptr<float>(),
                                     .partial_sums = sums.mutable_data_ptr<float>()};
  if (splits > 0) device_.Launch(cuda::MixSplitsCall(landmarks));
  device_.Launch(cuda::MergeSplitsCall(landmarks));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return {.keys = keys, .values = values};
}

void KernelAttention::AttendToRows(const OwnRowsToAttend& rows) {
  const Items items = ItemsOf(rows.rows.keys);
  const int64_t splits = cuda::SplitsOf(items.max_rows);
  const int head_width = HeadWidth(rows.queries, rows.heads);
  const at::Tensor outputs = Workspace({items.count, rows.heads, splits, cuda::PaddedHeadWidth(head_width)});
  const at::Tensor sums = Workspace({items.count, rows.heads, splits, 2});
  const cuda::ClsAttention attention = {.element = ElementOf(rows.queries),
                                        .heads = static_cast<int>(rows.heads),
                                        .head_width = head_width,
                                        .scale = ScaleOf(head_width),
                                        .items = items.count,
                                        .max_splits = static_cast<int>(splits),
                                        .ranges = items.ranges,
                                        .queries = RowsOf(rows.queries),
                                        .keys = RowsOf(rows.own.keys),
                                        .values = RowsOf(rows.own.values),
                                        .row_keys = RowsOf(rows.rows.keys),
                                        .row_values = RowsOf(rows.rows.values),
                                        .output = RowsOf(rows.attended),
                                        .partial_outputs = outputs.mutable_data_ptr<float>(),
                                        .partial_sums = sums.mutable_data_ptr<float>()};
  if (splits > 0) device_.Launch(cuda::AttendToRowsCall(attention));
  device_.Launch(cuda::MergeRowsCall(attention));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
}

void KernelAttention::ConvolveValues(const RowsToConvolve& rows) {
  if (rows.values.size(0) == 0) return;
  TORCH_CHECK(rows.taps.is_contiguous() && rows.taps.scalar_type() == rows.values.scalar_type(), "taps are ",
              rows.taps.scalar_type(), " and values ", rows.values.scalar_type(), ", or taps are not contiguous");
  device_.Launch(cuda::ValueConvolutionCall({.element = ElementOf(rows.values),
                                             .heads = static_cast<int>(rows.heads),
                                             .head_width = HeadWidth(rows.values, rows.heads),
                                             .kernel = static_cast<int>(rows.taps.size(1)),
                                             .taps = rows.taps.const_data_ptr(),
                                             .positions = places_.positions.const_data_ptr<int64_t>(),
                                             .documents = documents_.ranges.each,
                                             .tiles = Tiles(),
                                             .tile_count = static_cast<int>(documents_.shape.tiles),
                                             .values = RowsOf(rows.values),
                                             .sums = RowsOf(rows.sums)}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
}

at::Tensor KernelAttention::MeanOfRows(const at::Tensor& rows, int64_t length) {
  const Items items = ItemsOf(rows);
  const int64_t width = rows.size(-1), splits = cuda::MeanSplitsOf(items.max_rows);
  const at::Tensor means = at::empty({items.count, width}, rows.options());
  const at::Tensor sums = Workspace({items.count, splits, width});
  const cuda::MeanOfRows mean = {.element = ElementOf(rows),
                                 .width = static_cast<int>(width),
                                 .scale = static_cast<float>(1 / static_cast<double>(length)),
                                 .items = items.count,
                                 .max_splits = static_cast<int>(splits),
                                 .ranges = items.ranges,
                                 .rows = RowsOf(rows),
                                 .output = RowsOf(means),
                                 .partial_sums = sums.mutable_data_ptr<float>()};
  if (splits > 0) device_.Launch(cuda::SumSplitsCall(mean));
  device_.Launch(cuda::MergeSumsCall(mean));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return means;
}

at::Tensor KernelAttention::Embed(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& position_table,
                                  const at::Tensor& positions) {
  const at::Tensor rows = at::empty({ids.size(0), table.size(1)}, table.options());
  device_.Launch(cuda::EmbedTokensCall({.element = ElementOf(table),
                                        .table = table.const_data_ptr(),
                                        .ids = ids.const_data_ptr<int32_t>(),
                                        .position_table = position_table.const_data_ptr(),
                                        .positions = positions.const_data_ptr<int64_t>(),
                                        .count = ids.size(0),
                                        .width = static_cast<int>(table.size(1)),
                                        .output = RowsOf(rows)}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return rows;
}

at::Tensor KernelAttention::Mapped(const Linear& map, const at::Tensor& inputs, cuda::RowActivation activation,
                                   const at::Tensor& addend) const {
  const at::Tensor from = MatrixOf(inputs);
  std::vector<int64_t> sizes = inputs.sizes().vec();
  sizes.back() = map.outputs();
  const at::Tensor output = at::empty(sizes, inputs.options());
  device_.Launch(cuda::LinearMapCall({.element = ElementOf(from),
                                      .count = from.size(0),
                                      .width = static_cast<int>(map.inputs()),
                                      .outputs = static_cast<int>(map.outputs()),
                                      .rows = RowsOf(from),
                                      .weight = RowsOf(map.weight),
                                      .bias = map.bias.defined() ? map.bias.const_data_ptr() : nullptr,
                                      .activation = activation,
                                      .addend = addend.defined() ? RowsOf(addend) : cuda::Rows{},
                                      .output = RowsOf(output.flatten(0, -2))}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return output;
}

void KernelAttention::NormTo(const at::Tensor& normed, const LayerNorm& norm, const at::Tensor& rows) const {
  const at::Tensor input = MatrixOf(rows);
  device_.Launch(
      cuda::ManyNormsCall({.element = ElementOf(input),
                           .count = input.size(0),
                           .width = static_cast<int>(input.size(1)),
                           .epsilon = static_cast<float>(norm.epsilon),
                           .kinds = 1,
                           .each = {{.input = RowsOf(input), .norm = WeightsOf(norm), .output = RowsOf(normed)}}}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
}

at::Tensor KernelAttention::Norm(const LayerNorm& norm, const at::Tensor& rows) {
  const at::Tensor normed = at::empty(rows.sizes(), rows.options());
  NormTo(normed.flatten(0, -2), norm, rows);
  return normed;
}

at::Tensor KernelAttention::NormBehind(const at::Tensor& others, const LayerNorm& norm, const at::Tensor& rows) {
  const int64_t before = others.size(0), count = rows.size(0);
  const at::Tensor all = at::empty({before + count, rows.size(1)}, rows.options());
  all.narrow(0, 0, before).copy_(others);
  NormTo(all.narrow(0, before, count), norm, rows);
  return all;
}

RowKeyValues KernelAttention::NormBoth(const LayerNorm& key_norm, const LayerNorm& value_norm,
                                       const RowKeyValues& rows) {
  const at::Tensor keys = MatrixOf(rows.keys), values = MatrixOf(rows.values);
  const RowKeyValues normed = {.keys = at::empty(rows.keys.sizes(), rows.keys.options()),
                               .values = at::empty(rows.values.sizes(), rows.values.options())};
  const auto kind = [](const at::Tensor& input, const LayerNorm& norm, const at::Tensor& output) {
    return cuda::RowNorm{.input = RowsOf(input), .norm = WeightsOf(norm), .output = RowsOf(output.flatten(0, -2))};
  };
  device_.Launch(
      cuda::ManyNormsCall({.element = ElementOf(keys),
                           .count = keys.size(0),
                           .width = static_cast<int>(keys.size(1)),
                           .epsilon = static_cast<float>(key_norm.epsilon),
                           .kinds = 2,
                           .each = {kind(keys, key_norm, normed.keys), kind(values, value_norm, normed.values)}}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return normed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeGpuItemAttention(const ModelGpu& gpu, int64_t head_width) {
  LS_RETURN_IF_ERROR(CheckHeadWidth(head_width));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuDevice> device, OpenDevice(gpu));
  return std::make_unique<KernelAttention>(gpu, std::move(device));
}

}  // namespace longshort::models
