#include <algorithm>
#include <cmath>
#include <utility>

#include "ATen/Functions.h"
#include "models/device/pages.h"
#include "models/families/language_model/gpu_decoder.h"
#include "models/ops/causal_attention/cache_rows.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/products/row_products.h"
#include "models/ops/rows/rows.h"

namespace longshort::models {
namespace {

cuda::Rows RowsOf(const at::Tensor& rows) {
  return {.data = const_cast<void*>(rows.const_data_ptr()), .stride = rows.stride(0)};
}
const float* DataOf(const at::Tensor& floats) { return floats.defined() ? floats.const_data_ptr<float>() : nullptr; }
cuda::NormWeights WeightsOf(const LayerNorm& norm) { return {.gain = DataOf(norm.gain), .bias = DataOf(norm.bias)}; }

// Queues work on rows in the memory of this object, which must outlive it.
class Layers final {
 public:
  Layers(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache, int64_t rows, int64_t vectors)
      : decoder_(decoder),
        device_(device),
        cache_(cache),
        rows_(rows),
        are_few_(decoder.has_row_products() && rows <= cuda::kFewRows),
        hidden_(Empty(rows, width(), at::kFloat)),
        sums_(are_few_ ? Empty(rows, width(), at::kFloat) : hidden_),
        operand_(is_float() ? hidden_ : Empty(rows, width(), decoder.element())),
        projections_(Empty(rows, decoder.layers[0].projections.size(0), decoder.element())),
        attended_(Empty(rows, width(), decoder.element())),
        product_(Empty(rows, width(), decoder.element())),
        inner_(Empty(rows, config().feed_forward_width, decoder.element())),
        mixed_inputs_(Empty(vectors, width(), decoder.element())),
        mixed_keys_values_(Empty(vectors, 2 * width(), at::kFloat)),
        memory_keys_values_(Empty(vectors, 2 * width(), decoder.element())) {}

  void WriteZeroPages();
  void Run(const GpuStep& step, StepMemory& memory, at::Tensor logits);

 private:
  const LanguageModelConfig& config() const { return decoder_.config; }
  int64_t width() const { return config().model_width; }
  bool is_float() const { return decoder_.element() == at::kFloat; }
  cuda::ElementType type() const { return decoder_.kernel_element(); }
  int heads() const { return static_cast<int>(config().heads); }
  int head_width() const { return static_cast<int>(decoder_.head_width()); }
  at::Tensor Empty(int64_t rows, int64_t columns, at::ScalarType element) const {
    return at::empty({rows, columns}, device_.Options(element));
  }
  // The rows that products read, if they are not the residual branch itself.
  cuda::Rows Copy() const { return is_float() ? cuda::Rows{nullptr, 0} : RowsOf(operand_); }
  // The residual branch lacks this product: the next Normalize or Gather adds it.
  void SetAddend(const Linear* map) { addend_ = map; }
  cuda::Rows Addend() const { return addend_ == nullptr ? cuda::Rows{nullptr, 0} : RowsOf(product_); }
  const float* AddendBias() const { return addend_ == nullptr ? nullptr : DataOf(addend_->bias); }
  at::Tensor KeysValues() const { return projections_.narrow(1, width(), 2 * width()); }
  at::Tensor ProjectionLogits() const {
    return projections_.narrow(1, 3 * width(), config().heads * config().chunk_rank);
  }
  // The size of one layer's part of a window or segment page.
  int64_t LayerElements() const { return cuda::LayerElements(heads(), head_width()); }
  int64_t LayerBytes() const { return LayerElements() * cuda::ElementBytes(type()); }

  void Embed(const int64_t* tokens, bool with_copy);
  // Null for a layer's first norm, if its input has none.
  const LayerNorm* InputNorm(int64_t layer) const;
  void MultiplyInputs(const LayerNorm* norm, const Linear& map, cuda::RowActivation activation, at::Tensor& out);
  void AddProduct(const at::Tensor& rows, const Linear& map);
  void Normalize(const LayerNorm& norm);
  void Multiply(const at::Tensor& rows, const at::Tensor& weight, at::Tensor& out) const;
  cuda::RowProducts ProductsOf(const at::Tensor& rows, const at::Tensor& matrix, const at::Tensor& out) const;
  cuda::RowProducts ProductsOfInputs(const LayerNorm* norm, const at::Tensor& matrix, const at::Tensor& out) const;
  void RunLayer(int64_t layer, const GpuStep& step, StepMemory& memory);
  void MixChunks(int64_t layer, const GpuStep& step, const StepMemory& memory);
  void WriteRows(int64_t layer, const GpuStep& step, const StepMemory& memory) const;
  void Attend(int64_t layer, const GpuStep& step, StepMemory& memory) const;
  void AttendSingleRows(const cuda::CausalAttention& attention, const GpuStep& step, StepMemory& memory) const;
  void WriteLogits(const GpuStep& step, const StepMemory& memory, at::Tensor& logits);
  cuda::ChunkRows ChunkRowsOf(int64_t layer) const;
  cuda::WriteRows WriteRowsOf() const;

  const GpuDecoder& decoder_;
  const WorkerGpu& device_;
  const GpuCache cache_;
  const int64_t rows_;
  const bool are_few_;
  // Reused by every layer. hidden_, sums_, operand_ and attended_ are [rows, d]. hidden_ is the residual branch. Of few
  // rows, sums_ is the same before its norm.
  const at::Tensor hidden_, sums_, operand_;
  at::Tensor projections_;  // [rows, 3d + columns]
  const at::Tensor attended_;
  at::Tensor product_, inner_;
  const at::Tensor mixed_inputs_, mixed_keys_values_;
  at::Tensor memory_keys_values_;
  const Linear* addend_ = nullptr;
};

void Layers::Embed(const int64_t* tokens, bool with_copy) {
  device_.Launch(cuda::EmbedRowsCall({.table = DataOf(decoder_.embedding),
                                      .tokens = tokens,
                                      .count = rows_,
                                      .width = static_cast<int>(width()),
                                      .scale = std::sqrt(static_cast<float>(width())),
                                      .output = RowsOf(sums_),
                                      .copy = with_copy ? Copy() : cuda::Rows{nullptr, 0}}));
}

void Layers::Normalize(const LayerNorm& norm) {
  device_.Launch(cuda::NormRowsCall({.addend_type = type(),
                                     .input = RowsOf(hidden_),
                                     .addend = Addend(),
                                     .addend_bias = AddendBias(),
                                     .norm = WeightsOf(norm),
                                     .epsilon = static_cast<float>(norm.epsilon),
                                     .count = rows_,
                                     .width = static_cast<int>(width()),
                                     .output = RowsOf(hidden_),
                                     .copy = Copy()}));
  SetAddend(nullptr);
}

void Layers::Multiply(const at::Tensor& rows, const at::Tensor& weight, at::Tensor& out) const {
  if (are_few_) {
    return device_.Launch(cuda::RowProductsCall(ProductsOf(rows, weight, out)));
  }
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  at::mm_out(out, rows, weight.t());
}

cuda::RowProducts Layers::ProductsOf(const at::Tensor& rows, const at::Tensor& matrix, const at::Tensor& out) const {
  return {.matrix = RowsOf(matrix),
          .outputs = static_cast<int>(matrix.size(0)),
          .width = static_cast<int>(matrix.size(1)),
          .count = out.size(0),
          .rows = RowsOf(rows),
          .result = out.scalar_type() == at::kFloat ? cuda::ElementType::kFloat : cuda::ElementType::kBFloat16,
          .output = RowsOf(out)};
}

// The factors are the normalised rows of sums_.
cuda::RowProducts Layers::ProductsOfInputs(const LayerNorm* norm, const at::Tensor& matrix,
                                           const at::Tensor& out) const {
  cuda::RowProducts products = ProductsOf(sums_, matrix, out);
  std::swap(products.rows, products.sums);
  if (norm != nullptr) {
    products.norm = WeightsOf(*norm);
    products.epsilon = static_cast<float>(norm->epsilon);
  }
  return products;
}

const LayerNorm* Layers::InputNorm(int64_t layer) const {
  if (config().pre_layer_norm) return layer < config().layers ? &decoder_.layers[layer].norm1 : nullptr;
  return layer > 0 ? &decoder_.layers[layer - 1].norm2 : nullptr;
}

void Layers::MultiplyInputs(const LayerNorm* norm, const Linear& map, cuda::RowActivation activation, at::Tensor& out) {
  if (are_few_) {
    cuda::RowProducts products = ProductsOfInputs(norm, map.weight, out);
    products.inputs = RowsOf(hidden_);
    products.bias = DataOf(map.bias);
    products.activation = activation;
    return device_.Launch(cuda::RowProductsCall(products));
  }
  if (norm != nullptr) Normalize(*norm);
  Multiply(operand_, map.weight, out);
  if (activation == cuda::RowActivation::kNone) return;
  device_.Launch(cuda::ActivateRowsCall({.row = type(),
                                         .activation = activation,
                                         .rows = RowsOf(out),
                                         .bias = DataOf(map.bias),
                                         .count = rows_,
                                         .width = static_cast<int>(out.size(1))}));
}

void Layers::AddProduct(const at::Tensor& rows, const Linear& map) {
  if (are_few_) {
    cuda::RowProducts products = ProductsOf(rows, map.weight, sums_);
    products.bias = DataOf(map.bias);
    products.addend = RowsOf(hidden_);
    return device_.Launch(cuda::RowProductsCall(products));
  }
  Multiply(rows, map.weight, product_);
  SetAddend(&map);
}

void Layers::Run(const GpuStep& step, StepMemory& memory, at::Tensor logits) {
  Embed(memory.numbers() + step.plan.tokens.first, /*with_copy=*/!config().pre_layer_norm);
  for (int64_t layer = 0; layer < config().layers; ++layer) RunLayer(layer, step, memory);
  if (logits.defined()) WriteLogits(step, memory, logits);
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());  // this object's tensors are freed next
}

void Layers::RunLayer(int64_t layer, const GpuStep& step, StepMemory& memory) {
  const GpuLayer& weights = decoder_.layers[layer];
  const bool gelu = config().activation == Activation::kGelu;
  MultiplyInputs(InputNorm(layer), {.weight = weights.projections, .bias = {}}, cuda::RowActivation::kNone,
                 projections_);
  if (step.plan.full_chunks() > 0) MixChunks(layer, step, memory);
  WriteRows(layer, step, memory);
  Attend(layer, step, memory);
  AddProduct(attended_, weights.output);
  MultiplyInputs(config().pre_layer_norm ? &weights.norm2 : &weights.norm1, weights.feed_forward_in,
                 gelu ? cuda::RowActivation::kGelu : cuda::RowActivation::kRelu, inner_);
  AddProduct(inner_, weights.feed_forward_out);
}

// --- pages ---

cuda::ChunkRows Layers::ChunkRowsOf(int64_t layer) const {
  const int64_t layer_floats = config().chunk_size * decoder_.OpenRowFloats();
  return {.row = type(),
          .inputs = RowsOf(hidden_),
          .keys_values = RowsOf(KeysValues()),
          .logits = RowsOf(ProjectionLogits()),
          .heads = heads(),
          .head_width = head_width(),
          .chunk_size = static_cast<int>(config().chunk_size),
          .chunk_rank = static_cast<int>(config().chunk_rank),
          .open_chunks = cache_.open_chunks + layer * layer_floats,
          .page_floats = config().layers * layer_floats};
}

void Layers::MixChunks(int64_t layer, const GpuStep& step, const StepMemory& memory) {
  const StepPlan& plan = step.plan;
  device_.Launch(cuda::MixChunksCall({.rows = ChunkRowsOf(layer),
                                      .chunk_ends = memory.numbers() + plan.chunk_ends.first,
                                      .chunk_kept = memory.numbers() + plan.chunk_kept.first,
                                      .chunk_pages = memory.numbers() + plan.chunk_pages.first,
                                      .count = plan.full_chunks(),
                                      .mixed_inputs = RowsOf(mixed_inputs_),
                                      .mixed_keys_values = RowsOf(mixed_keys_values_)}));
  Multiply(mixed_inputs_, decoder_.layers[layer].keys_values, memory_keys_values_);
}

// Without rows.
cuda::WriteRows Layers::WriteRowsOf() const {
  return {.element = type(),
          .heads = heads(),
          .head_width = head_width(),
          .epsilon = static_cast<float>(decoder_.layers[0].window_norm.epsilon),
          .page_elements = config().layers * LayerElements(),
          .window = {},
          .memory = {},
          .segment = {},
          .kept = {}};
}

void Layers::WriteRows(int64_t layer, const GpuStep& step, const StepMemory& memory) const {
  const GpuLayer& weights = decoder_.layers[layer];
  const StepPlan& plan = step.plan;
  const auto keys = [&](cuda::ElementType row, const at::Tensor& rows, const LayerNorm& norm,
                        const StepPlan::Array& slots, char* pages) -> cuda::NewKeys {
    return {.row = row,
            .keys_values = RowsOf(rows),
            .biases = DataOf(weights.keys_values_bias),
            .norm = WeightsOf(norm),
            .slots = memory.numbers() + slots.first,
            .count = slots.size,
            .pages = pages + layer * LayerBytes()};
  };
  cuda::WriteRows write = WriteRowsOf();
  write.window = keys(type(), KeysValues(), weights.window_norm, plan.window_slots, cache_.window);
  write.memory = keys(type(), memory_keys_values_, weights.chunk_norm, plan.memory_slots, cache_.segment);
  write.segment =
      keys(cuda::ElementType::kFloat, mixed_keys_values_, weights.chunk_norm, plan.segment_slots, cache_.segment);
  write.kept = {.rows = ChunkRowsOf(layer),
                .indices = memory.numbers() + plan.kept_rows.first,
                .slots = memory.numbers() + plan.kept_slots.first,
                .count = plan.kept_rows.size};
  device_.Launch(cuda::WriteRowsCall(write));
}

void Layers::WriteZeroPages() {
  const at::Tensor slots = at::arange(cuda::kPageRows, device_.Options(at::kLong));
  for (int64_t layer = 0; layer < config().layers; ++layer) {
    const GpuLayer& weights = decoder_.layers[layer];
    hidden_.zero_();
    sums_.zero_();
    operand_.zero_();
    MultiplyInputs(config().pre_layer_norm ? &weights.norm1 : nullptr, {.weight = weights.projections, .bias = {}},
                   cuda::RowActivation::kNone, projections_);
    const auto keys = [&](const LayerNorm& norm, char* page) -> cuda::NewKeys {
      cuda::Rows row = RowsOf(KeysValues());
      row.stride = 0;
      return {.row = type(),
              .keys_values = row,
              .biases = DataOf(weights.keys_values_bias),
              .norm = WeightsOf(norm),
              .slots = slots.const_data_ptr<int64_t>(),
              .count = cuda::kPageRows,
              .pages = page + layer * LayerBytes()};
    };
    cuda::WriteRows write = WriteRowsOf();
    write.window = keys(weights.window_norm, cache_.zero_window);
    write.memory = keys(weights.chunk_norm, cache_.zero_segment);
    device_.Launch(cuda::WriteRowsCall(write));
    device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  }
  device_.ThrowUnlessOk(device_->Synchronize());
}

// --- attention ---

void Layers::Attend(int64_t layer, const GpuStep& step, StepMemory& memory) const {
  const GpuLayer& weights = decoder_.layers[layer];
  const StepPlan& plan = step.plan;
  const int64_t* const numbers = memory.numbers();
  const auto keys = [&](const StepPlan::PageTables& table, const char* pages, const char* zero_page) -> cuda::KeyPages {
    return {.table = {.first_pages = numbers + table.first_pages.first,
                      .first_ids = numbers + table.first_ids.first,
                      .ids = numbers + table.ids.first},
            .pages = pages + layer * LayerBytes(),
            .zero_page = zero_page + layer * LayerBytes()};
  };
  const cuda::CausalAttention attention = {
      .element = type(),
      .row = type(),
      .heads = heads(),
      .head_width = head_width(),
      .window_length = static_cast<int>(config().window_length),
      .chunk_size = static_cast<int>(config().chunk_size),
      .chunk_rank = static_cast<int>(config().chunk_rank),
      .memory_vectors = static_cast<int>(decoder_.memory_vectors()),
      .window_bias = DataOf(weights.window_bias),
      .relative_bias = DataOf(weights.relative_bias),
      .query_bias = DataOf(weights.query_bias),
      .window_distances = weights.window_distances.const_data_ptr(),
      .chunk_distances = weights.chunk_distances.const_data_ptr(),
      .chunk_distance_count = static_cast<int>(weights.chunk_distances.size(1)),
      .positions = numbers + plan.positions.first,
      .segment_starts = numbers + plan.segment_starts.first,
      .row_slices = numbers + plan.row_slices.first,
      .memory = keys(plan.memory, cache_.segment, cache_.zero_segment),
      .segment = keys(plan.segment, cache_.segment, cache_.zero_segment),
      .window = keys(plan.window, cache_.window, cache_.zero_window),
      .page_elements = config().layers * LayerElements(),
      .queries = projections_.const_data_ptr(),
      .query_scale = decoder_.query_scale(),
      .query_stride = projections_.stride(0),
      .output = attended_.mutable_data_ptr(),
      .output_stride = attended_.stride(0),
  };
  if (step.tile_count() > 0) {
    device_.Launch(cuda::PromptAttentionCall({.attention = attention,
                                              .tiles = numbers + step.tiles.first,
                                              .tile_count = static_cast<int>(step.tile_count())},
                                             device_->facts().max_shared_bytes));
  }
  if (step.single_count() > 0) AttendSingleRows(attention, step, memory);
}

void Layers::AttendSingleRows(const cuda::CausalAttention& attention, const GpuStep& step, StepMemory& memory) const {
  const int64_t blocks = decoder_.max_key_blocks();
  const int64_t at_once = std::min(step.single_count(), kSingleRowsAtOnce);
  const int64_t results = at_once * config().heads * blocks;
  GpuMemory& partial_results = memory.partial_results;
  const auto bytes = static_cast<size_t>(decoder_.PartialResultBytes(at_once));
  if (partial_results.bytes() < bytes) {
    device_.ThrowUnlessOk(device_->Synchronize());
    partial_results = {};
    absl::StatusOr<GpuMemory> larger = GpuMemory::OnDevice(*device_, bytes, GpuMemoryUse::kKernels);
    device_.ThrowUnlessOk(larger.status());
    partial_results = *std::move(larger);
  }
  for (int64_t first = 0; first < step.single_count(); first += at_once) {
    const cuda::DecodeAttention single = {
        .attention = attention,
        .rows = memory.numbers() + step.single_rows.first + first,
        .row_count = static_cast<int>(std::min(at_once, step.single_count() - first)),
        .max_blocks = static_cast<int>(blocks),
        .partial_outputs = partial_results.as<float>(),
        .partial_sums = partial_results.as<float>() + results * cuda::PaddedHeadWidth(head_width())};
    device_.Launch(cuda::AttendToBlocksCall(single));
    device_.Launch(cuda::MergeBlocksCall(single));
  }
}

void Layers::WriteLogits(const GpuStep& step, const StepMemory& memory, at::Tensor& logits) {
  const LayerNorm* const norm = InputNorm(config().layers);
  const int64_t* const indices = memory.numbers() + step.plan.logit_rows.first;
  if (are_few_) {
    cuda::RowProducts products = ProductsOfInputs(norm, decoder_.output.weight, logits);
    products.indices = indices;
    products.bias = DataOf(decoder_.output.bias);
    return device_.Launch(cuda::RowProductsCall(products));
  }
  if (norm != nullptr) Normalize(*norm);
  const at::Tensor requested = Empty(logits.size(0), width(), decoder_.element());
  device_.Launch(cuda::GatherRowsCall({.row = type(),
                                       .input = RowsOf(hidden_),
                                       .addend = Addend(),
                                       .addend_bias = AddendBias(),
                                       .indices = indices,
                                       .count = logits.size(0),
                                       .width = static_cast<int>(width()),
                                       .output = RowsOf(requested)}));
  at::Tensor product = Empty(logits.size(0), config().vocabulary_size, decoder_.element());
  Multiply(requested, decoder_.output.weight, product);
  at::add_out(logits, product, decoder_.output.bias);
}

}  // namespace

void WriteZeroPages(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache) {
  Layers(decoder, device, cache, /*rows=*/1, /*vectors=*/0).WriteZeroPages();
}

void QueueLayers(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache, const GpuStep& step,
                 StepMemory& memory, at::Tensor logits) {
  const int64_t vectors = step.plan.full_chunks() * decoder.config.chunk_rank;
  Layers(decoder, device, cache, step.plan.rows(), vectors).Run(step, memory, std::move(logits));
}

}  // namespace longshort::models
