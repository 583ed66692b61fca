#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "c10/core/GradMode.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/ops/document_layer/document_layer.h"

namespace longshort::models {
namespace {

using cpu::kBlockRows;

// Weights of a layer that stay in a core's L2 cache beside the rows of a block, and those that are worth reading from
// a larger cache for each block if documents have some full ones. LibTorch's products are faster with more.
constexpr int64_t kCachedFloats = 1 << 18, kReadFloats = 1 << 20;
constexpr int64_t kLongDocument = 4 * kBlockRows;
// Pieces of a document that threads take in turn: the same for any number of threads, so that bits are, too.
constexpr int64_t kPieces = 8, kMaxPieceBlocks = 8;

const float* DataOf(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr; }
cpu::RowMap MapOf(const Linear& map) { return {.weight = DataOf(map.weight), .bias = DataOf(map.bias)}; }
cpu::RowNorm NormOf(const LayerNorm& norm) {
  return {.gain = DataOf(norm.gain), .bias = DataOf(norm.bias), .epsilon = static_cast<float>(norm.epsilon)};
}

std::vector<const Linear*> MapsOf(const TextLayer& layer) {
  std::vector<const Linear*> maps = {
      &layer.query, &layer.key, &layer.value, &layer.output, &layer.feed_forward.in, &layer.feed_forward.out};
  if (layer.dynamic_projection.defined()) maps.push_back(&layer.dynamic_projection);
  return maps;
}

// A layer for the kernels, with its transposed projection.
struct KernelLayer {
  explicit KernelLayer(const TextLayer& layer)
      : kernel{.width = layer.output.weight.size(0),
               .heads = layer.heads,
               .feed_forward_width = layer.feed_forward.in.weight.size(0),
               .norms_after = layer.norms_after,
               .norm1 = NormOf(layer.norm1),
               .norm2 = NormOf(layer.norm2),
               .window_norm = NormOf(layer.window_norm),
               .shared_norm = NormOf(layer.shared_norm),
               .query = MapOf(layer.query),
               .key = MapOf(layer.key),
               .value = MapOf(layer.value),
               .output = MapOf(layer.output),
               .feed_forward_in = MapOf(layer.feed_forward.in),
               .feed_forward_out = MapOf(layer.feed_forward.out)},
        layer(layer) {
    if (!layer.dynamic_projection.weight.defined()) return;
    const at::Tensor& weight = layer.dynamic_projection.weight;
    kernel.rank = weight.size(0) / layer.heads;
    projection = at::zeros({kernel.width, kernel.projection_columns()}, weight.options());
    projection.narrow(1, 0, weight.size(0)).copy_(weight.t());
    kernel.projection = DataOf(projection);
  }

  cpu::DocumentLayer kernel;
  const TextLayer& layer;
  at::Tensor projection;
};

// One document, and its buffers.
class DocumentRun final {
 public:
  DocumentRun(const PackedDocument& document, int64_t width, const cpu::DocumentLayerKernels& kernels)
      : kernels_(kernels),
        document_(document),
        width_(width),
        blocks_((document.rows + kBlockRows - 1) / kBlockRows),
        pieces_(std::min(blocks_, kPieces * ((blocks_ + kPieces * kMaxPieceBlocks - 1) / (kPieces * kMaxPieceBlocks)))),
        hidden_(at::empty({3, blocks_, width, kBlockRows}, at::kFloat)) {
    for (const WindowSegment& segment : document.segments)
      max_keys_ = std::max(max_keys_, segment.end_key - segment.first_key);
    // The segments of a block's first and last row may reach beyond the block.
    max_keys_ = std::min(document.rows, kBlockRows + 2 * max_keys_);
  }

  // tokens [rows, D] of the whole batch
  void Read(const at::Tensor& tokens) {
    const float* const from = DataOf(tokens) + document_.first_row * width_;
    ForEachBlock([&](int64_t /*piece*/, int64_t block, float* /*scratch*/) {
      float* const to = Hidden() + block * width_ * kBlockRows;
      const int64_t rows = RowsOf(block);
      for (int64_t c = 0; c < width_; ++c) {
        for (int64_t row = 0; row < kBlockRows; ++row)
          to[c * kBlockRows + row] = row < rows ? from[(block * kBlockRows + row) * width_ + c] : 0.0F;
      }
    });
  }

  void Write(const at::Tensor& tokens) const {
    float* const to = tokens.mutable_data_ptr<float>() + document_.first_row * width_;
    const float* const from = DataOf(hidden_);
    for (int64_t row = 0; row < document_.rows; ++row) {
      for (int64_t c = 0; c < width_; ++c)
        to[row * width_ + c] = from[((row / kBlockRows) * width_ + c) * kBlockRows + row % kBlockRows];
    }
  }

  // cls: null, or the CLS row [D], which is replaced by the layer's output
  void Run(const KernelLayer& of, float* cls, bool cls_only);

 private:
  float* Hidden() const { return hidden_.mutable_data_ptr<float>(); }
  int64_t RowsOf(int64_t block) const { return std::min(kBlockRows, document_.rows - block * kBlockRows); }
  // Calls work(piece, block, scratch) for all blocks, those of a piece in order, on the threads of the calling thread.
  void ForEachBlock(const std::function<void(int64_t piece, int64_t block, float* scratch)>& work) const {
    at::parallel_for(0, pieces_, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
      const auto scratch = std::make_unique_for_overwrite<float[]>(scratch_floats_);
      for (int64_t piece = begin; piece < end; ++piece) {
        for (int64_t block = FirstBlock(piece); block < FirstBlock(piece + 1); ++block)
          work(piece, block, scratch.get());
      }
    });
  }
  int64_t FirstBlock(int64_t piece) const { return piece * blocks_ / pieces_; }

  const cpu::DocumentLayerKernels& kernels_;
  const PackedDocument& document_;
  const int64_t width_, blocks_, pieces_;
  const at::Tensor hidden_;  // [3, blocks, D, kBlockRows]: hidden rows, keys, values
  int64_t max_keys_ = 0, scratch_floats_ = 0;
};

void DocumentRun::Run(const KernelLayer& of, float* cls, bool cls_only) {
  const cpu::DocumentLayer& layer = of.kernel;
  const int64_t matrix = blocks_ * width_ * kBlockRows, shared = layer.rank + (cls == nullptr ? 0 : 1);
  std::vector<float> vectors((2 * shared + 3) * width_);  // shared keys and values; query, key and value of CLS
  float *const query = vectors.data() + 2 * shared * width_, *const key = query + width_, *const value = key + width_;
  const cpu::LayerRows rows{.rows = document_.rows,
                            .segments = document_.segments.data(),
                            .segment_count = static_cast<int64_t>(document_.segments.size()),
                            .hidden = Hidden(),
                            .keys = Hidden() + matrix,
                            .values = Hidden() + 2 * matrix,
                            .shared = shared,
                            .shared_keys = vectors.data(),
                            .shared_values = vectors.data() + shared * width_};
  scratch_floats_ = cpu::DocumentLayerScratchFloats(layer, shared, max_keys_) + layer.block_floats();
  const auto scratch_of_cls = std::make_unique_for_overwrite<float[]>(scratch_floats_);
  if (cls != nullptr) {
    kernels_.project_cls(layer, cls, of.layer.normalized_cls, query, key, value, scratch_of_cls.get());
    kernels_.normalize_row(layer.shared_norm, width_, key, rows.shared_keys);
    kernels_.normalize_row(layer.shared_norm, width_, value, rows.shared_values);
  }

  const int64_t landmark_floats = cpu::LandmarkSumsFloats(layer), cls_floats = cpu::ClsSumsFloats(layer);
  std::vector<float> landmark_sums(pieces_ * landmark_floats), cls_sums(pieces_ * cls_floats);
  ForEachBlock([&](int64_t piece, int64_t block, float* scratch) {
    kernels_.collect_block(layer, rows, block, block == FirstBlock(piece),
                           landmark_sums.data() + piece * landmark_floats, scratch);
  });
  if (pieces_ > 0) kernels_.finish_landmarks(layer, rows, landmark_sums.data(), pieces_);

  const bool sees_keys = of.layer.cls_sees_keys;
  ForEachBlock([&](int64_t piece, int64_t block, float* scratch) {
    const int64_t offset = block * width_ * kBlockRows;
    float* const attended = scratch;
    scratch += width_ * kBlockRows;
    if (!(cls_only && sees_keys)) kernels_.attend_block(layer, rows, block, attended, scratch);
    if (cls != nullptr) {
      kernels_.add_to_cls(layer, query, sees_keys ? rows.keys + offset : attended,
                          sees_keys ? rows.values + offset : attended, RowsOf(block), block == FirstBlock(piece),
                          cls_sums.data() + piece * cls_floats, scratch);
    }
    if (!cls_only) kernels_.finish_block(layer, attended, RowsOf(block), rows.hidden + offset, scratch);
  });
  if (cls != nullptr) {
    kernels_.finish_cls(layer, query, sees_keys ? rows.shared_keys : key, sees_keys ? rows.shared_values : value,
                        cls_sums.data(), pieces_, cls, scratch_of_cls.get());
  }
}

// Whether the kernels can read the weights, and no layer has more than so many.
bool Fit(absl::Span<const TextLayer> layers, int64_t max_floats) {
  return std::all_of(layers.begin(), layers.end(), [max_floats](const TextLayer& layer) {
    int64_t floats = 0;
    for (const Linear* map : MapsOf(layer)) {
      const at::Tensor& weight = map->weight;
      if (!weight.defined() || !weight.is_cpu() || weight.scalar_type() != at::kFloat || !weight.is_contiguous())
        return false;
      floats += weight.numel();
    }
    return !layer.value_taps.defined() && floats <= max_floats;
  });
}

}  // namespace

bool CanFuse(absl::Span<const TextLayer> layers) { return Fit(layers, kCachedFloats); }

bool CanFuse(absl::Span<const TextLayer> layers, const PackedDocuments& packed) {
  const bool are_long = packed.rows() >= kLongDocument * std::ssize(packed.documents);
  return !c10::GradMode::is_enabled() && Fit(layers, are_long ? kReadFloats : kCachedFloats);
}

HiddenRows RunFused(absl::Span<const TextLayer> layers, const PackedDocuments& packed, const at::Tensor& tokens,
                    const at::Tensor& cls, int64_t cls_layer, bool cls_only, cpu::InstructionSet set) {
  const cpu::DocumentLayerKernels& kernels = cpu::DocumentLayerKernelsFor(set);
  const std::vector<KernelLayer> kernel_layers(layers.begin(), layers.end());
  const int64_t width = tokens.size(1), cls_rows = cls.defined() ? cls.size(0) : 0;
  HiddenRows output{at::empty({cls_rows + (cls_only ? 0 : tokens.size(0)), width}, tokens.options()), cls_rows};
  if (cls_rows > 0) output.cls().copy_(cls);
  const at::Tensor input = tokens.contiguous();
  for (size_t index = 0; index < packed.documents.size(); ++index) {
    DocumentRun run(packed.documents[index], width, kernels);
    run.Read(input);
    float* const row = cls_rows == 0 ? nullptr : output.all.mutable_data_ptr<float>() + index * width;
    for (int64_t layer = 0; layer < std::ssize(kernel_layers); ++layer) {
      const bool last = layer + 1 == std::ssize(kernel_layers);
      run.Run(kernel_layers[layer], layer >= cls_layer ? row : nullptr, cls_only && last);
    }
    if (!cls_only) run.Write(output.tokens());
  }
  return output;
}

}  // namespace longshort::models
