#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/gpu/cache_rows.h"
#include "models/gpu/causal_attention.h"
#include "models/gpu/pages.h"
#include "models/language_model/backends.h"
#include "models/language_model/gpu_pages.h"
#include "models/language_model/gpu_step.h"
#include "models/language_model/gpu_tables.h"
#include "models/layers/library.h"

namespace longshort::models {
namespace {

cuda::Rows RowsOf(const at::Tensor& rows) {
  return {.data = const_cast<void*>(rows.const_data_ptr()), .stride = rows.stride(0)};
}

class GpuBackend final : public LanguageModelBackend {
 public:
  static absl::StatusOr<std::unique_ptr<LanguageModelBackend>> Create(std::shared_ptr<const SharedTables> tables,
                                                                      const ModelGpu& gpu) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuDevice> device, gpu.open());
    std::unique_ptr<GpuBackend> backend(new GpuBackend(std::move(tables), gpu, std::move(device)));
    LS_RETURN_IF_ERROR(backend->device_.ReportLoss(backend->AllocateZeroPages()));
    return backend;
  }
  ~GpuBackend() override {
    // Queued work uses memory that is freed now. A lost device has no queued work.
    device_->Synchronize().IgnoreError();
  }

  absl::Status Allocate(const CachePages& pages) override {
    LS_RETURN_IF_ERROR(device_.ReportLoss(ReleaseGraphs()));  // they use the previous pages
    LS_RETURN_IF_ERROR(device_.ReportLoss(window_pages_.Allocate(pages.window)));
    LS_RETURN_IF_ERROR(device_.ReportLoss(segment_pages_.Allocate(pages.segment)));
    return device_.ReportLoss(open_chunks_.Allocate(pages.open_chunk));
  }
  void WriteZeroRows(int64_t layer, const at::Tensor& in_window, const at::Tensor& in_segment) override;

  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override {
    return device_.ReportLoss(PagesOf(kind).Copy(from, to));
  }
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override {
    absl::StatusOr<std::string> bytes = PagesOf(kind).Read(page, rows);
    device_.ReportLoss(bytes.status()).IgnoreError();
    return bytes;
  }
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override {
    return device_.ReportLoss(PagesOf(kind).Write(page, bytes));
  }

  at::Tensor BeginStep(const StepPlan& plan) override;
  MixedChunks MixChunks(int64_t layer, const LayerRows& rows) override;
  void WriteRows(int64_t layer, const LayerRows& rows) override;
  at::Tensor Attend(int64_t layer, const at::Tensor& queries) override;
  absl::Span<const float> EndStep(const at::Tensor& logits) override;
  StepOutput RunStep(const StepPlan& plan, const StepLayers& layers) override;
  absl::Status PrepareSteps(const StepLayers& layers) override;

 private:
  GpuBackend(std::shared_ptr<const SharedTables> tables, const ModelGpu& gpu, std::unique_ptr<GpuDevice> device)
      : tables_(std::move(tables)),
        device_(gpu, std::move(device)),
        window_pages_(*device_, tables_->PageLayout()),
        segment_pages_(*device_, tables_->PageLayout()),
        open_chunks_(*device_, tables_->OpenChunkLayout()),
        eager_memory_(*device_),
        graph_memory_(*device_) {}

  const LanguageModelConfig& config() const { return tables_->config; }
  int heads() const { return static_cast<int>(config().heads); }
  // The size of one layer's part of a window or segment page.
  int64_t LayerBytes() const { return window_pages_.page_bytes() / config().layers; }
  int64_t PageElements() const { return config().layers * cuda::LayerElements(config().heads, tables_->head_width()); }
  const GpuPages& PagesOf(PageKind kind) const {
    if (kind == PageKind::kOpenChunk) return open_chunks_;
    return kind == PageKind::kWindow ? window_pages_ : segment_pages_;
  }
  GpuPages& PagesOf(PageKind kind) { return const_cast<GpuPages&>(std::as_const(*this).PagesOf(kind)); }

  absl::Status AllocateZeroPages();
  // Writes `rows` [n, 2, d] to `slots` [n], which is on the device, in a layer's part of the pages at `pages`.
  void Append(int64_t layer, const cuda::Rows& rows, const int64_t* slots, int64_t count, char* pages);
  cuda::ChunkRows ChunkRowsOf(int64_t layer, const LayerRows& rows) const;
  cuda::KeyPages KeyPagesOf(const StepPlan::PageTables& pages, int64_t layer, const char* first,
                            const char* zero) const;
  void AttendSingleRows(const cuda::CausalAttention& attention);

  // Sets the step of the work queued next; its numbers are in `memory`.
  void Use(const GpuStep& step, StepMemory& memory) {
    step_ = &step;
    memory_ = &memory;
  }
  at::Tensor NumbersIn(const StepMemory& memory, size_t count) const {
    return at::from_blob(memory.numbers(), {static_cast<int64_t>(count)}, device_.Options(at::kLong));
  }
  absl::Status ReserveMemoryOfGraphs();
  absl::Status CaptureGraph(const StepShape& shape, const StepLayers& layers);
  absl::Status ReleaseGraphs();
  void QueueLayers(const StepGraph& graph, const StepLayers& layers);
  absl::Span<const float> Replay(StepGraph& graph, const StepPlan& plan, const StepTiles& tiles);

  // The device address of an array of the step.
  const int64_t* Of(const StepPlan::Array& array) const { return memory_->numbers() + array.first; }
  const StepPlan& plan() const { return step_->plan; }

  const std::shared_ptr<const SharedTables> tables_;
  WorkerGpu device_;
  GpuPages window_pages_, segment_pages_, open_chunks_;
  GpuMemory zero_window_page_, zero_segment_page_;
  StepMemory eager_memory_, graph_memory_;
  GpuMemory graph_logits_;  // [rows of the largest graph, V]
  GpuStep eager_step_;
  // The step that is being queued.
  const GpuStep* step_ = nullptr;
  StepMemory* memory_ = nullptr;
  std::vector<std::unique_ptr<StepGraph>> graphs_;  // in the order of the shapes
};

absl::Status GpuBackend::AllocateZeroPages() {
  for (GpuMemory* page : {&zero_window_page_, &zero_segment_page_}) {
    LS_ASSIGN_OR_RETURN(*page, GpuMemory::OnDevice(*device_, window_pages_.page_bytes(), GpuMemoryUse::kKernels));
  }
  return absl::OkStatus();
}

void GpuBackend::WriteZeroRows(int64_t layer, const at::Tensor& in_window, const at::Tensor& in_segment) {
  const at::Tensor slots = at::arange(cuda::kPageRows, in_window.options().dtype(at::kLong));
  const auto write = [&](const at::Tensor& row, const GpuMemory& page) {
    Append(layer, {.data = const_cast<void*>(row.const_data_ptr()), .stride = 0}, slots.const_data_ptr<int64_t>(),
           cuda::kPageRows, page.data());
  };
  write(in_window, zero_window_page_);
  write(in_segment, zero_segment_page_);
  device_.ThrowUnlessOk(device_->Synchronize());  // the tensors are freed next
}

void GpuBackend::Append(int64_t layer, const cuda::Rows& rows, const int64_t* slots, int64_t count, char* pages) {
  device_.Launch(cuda::AppendRowsCall({.row = cuda::ElementType::kFloat,
                                       .element = tables_->kernel_element(),
                                       .keys_values = rows,
                                       .slots = slots,
                                       .gain = nullptr,
                                       .bias = nullptr,
                                       .epsilon = 0,
                                       .count = count,
                                       .heads = heads(),
                                       .head_width = static_cast<int>(tables_->head_width()),
                                       .pages = pages + layer * LayerBytes(),
                                       .page_elements = PageElements()}));
}

at::Tensor GpuBackend::BeginStep(const StepPlan& plan) {
  eager_step_ = MakeGpuStep(plan);
  device_.ThrowUnlessOk(eager_memory_.Queue(eager_step_));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  Use(eager_step_, eager_memory_);
  return NumbersIn(eager_memory_, plan.numbers.size());
}

cuda::ChunkRows GpuBackend::ChunkRowsOf(int64_t layer, const LayerRows& rows) const {
  return {.row = cuda::ElementType::kFloat,
          .inputs = RowsOf(rows.input),
          .keys_values = RowsOf(rows.keys_values),
          .logits = RowsOf(rows.projection_logits),
          .heads = heads(),
          .head_width = static_cast<int>(tables_->head_width()),
          .chunk_size = static_cast<int>(config().chunk_size),
          .chunk_rank = static_cast<int>(config().chunk_rank),
          .open_chunks =
              reinterpret_cast<float*>(open_chunks_.data()) + layer * config().chunk_size * tables_->OpenRowFloats(),
          .page_floats = config().layers * config().chunk_size * tables_->OpenRowFloats()};
}

MixedChunks GpuBackend::MixChunks(int64_t layer, const LayerRows& rows) {
  const int64_t vectors = plan().full_chunks() * config().chunk_rank, width = config().model_width;
  const MixedChunks mixed = {.inputs = at::empty({vectors, width}, rows.input.options()),
                             .keys_values = at::empty({vectors, 2, width}, rows.input.options())};
  device_.Launch(cuda::MixChunksCall({.rows = ChunkRowsOf(layer, rows),
                                      .chunk_ends = Of(plan().chunk_ends),
                                      .chunk_kept = Of(plan().chunk_kept),
                                      .chunk_pages = Of(plan().chunk_pages),
                                      .count = plan().full_chunks(),
                                      .mixed_inputs = RowsOf(mixed.inputs),
                                      .mixed_keys_values = RowsOf(mixed.keys_values)}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return mixed;
}

void GpuBackend::WriteRows(int64_t layer, const LayerRows& rows) {
  Append(layer, RowsOf(rows.window), Of(plan().window_slots), plan().rows(), window_pages_.data());
  if (plan().full_chunks() > 0) {
    const int64_t vectors = plan().memory_slots.size;
    Append(layer, RowsOf(rows.memory), Of(plan().memory_slots), vectors, segment_pages_.data());
    Append(layer, RowsOf(rows.segment), Of(plan().segment_slots), vectors, segment_pages_.data());
  }
  device_.Launch(cuda::KeepRowsCall({.rows = ChunkRowsOf(layer, rows),
                                     .kept_rows = Of(plan().kept_rows),
                                     .kept_slots = Of(plan().kept_slots),
                                     .count = plan().kept_rows.size}));
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
}

cuda::KeyPages GpuBackend::KeyPagesOf(const StepPlan::PageTables& pages, int64_t layer, const char* first,
                                      const char* zero) const {
  return {.table = {.first_pages = Of(pages.first_pages), .first_ids = Of(pages.first_ids), .ids = Of(pages.ids)},
          .pages = first + layer * LayerBytes(),
          .zero_page = zero + layer * LayerBytes()};
}

at::Tensor GpuBackend::Attend(int64_t layer, const at::Tensor& queries) {
  const LayerTables& tables = tables_->layers[layer];
  const at::Tensor attended = at::empty(queries.sizes(), queries.options());
  const cuda::CausalAttention attention = {
      .element = tables_->kernel_element(),
      .row = cuda::ElementType::kFloat,
      .heads = heads(),
      .head_width = static_cast<int>(tables_->head_width()),
      .window_length = static_cast<int>(config().window_length),
      .chunk_size = static_cast<int>(config().chunk_size),
      .chunk_rank = static_cast<int>(config().chunk_rank),
      .memory_vectors = static_cast<int>(tables_->memory_vectors()),
      .window_bias = tables.window_bias.const_data_ptr<float>(),
      .relative_bias = tables.relative_bias.const_data_ptr<float>(),
      .window_distances = tables.window_distances.const_data_ptr(),
      .chunk_distances = tables.chunk_distances.const_data_ptr(),
      .chunk_distance_count = static_cast<int>(tables.chunk_distances.size(1)),
      .positions = Of(plan().positions),
      .segment_starts = Of(plan().segment_starts),
      .row_slices = Of(plan().row_slices),
      .memory = KeyPagesOf(plan().memory, layer, segment_pages_.data(), zero_segment_page_.data()),
      .segment = KeyPagesOf(plan().segment, layer, segment_pages_.data(), zero_segment_page_.data()),
      .window = KeyPagesOf(plan().window, layer, window_pages_.data(), zero_window_page_.data()),
      .page_elements = PageElements(),
      .queries = queries.const_data_ptr(),
      .query_stride = queries.stride(0),
      .output = attended.mutable_data_ptr(),
      .output_stride = attended.stride(0),
  };
  if (step_->tile_count() > 0) {
    device_.Launch(cuda::PromptAttentionCall(
        {.attention = attention, .tiles = Of(step_->tiles), .tile_count = static_cast<int>(step_->tile_count())}));
  }
  if (step_->single_count() > 0) AttendSingleRows(attention);
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  return attended;
}

void GpuBackend::AttendSingleRows(const cuda::CausalAttention& attention) {
  const int64_t blocks = tables_->max_key_blocks();
  const int64_t results = step_->single_count() * config().heads * blocks;
  const int64_t padded = cuda::PaddedHeadWidth(tables_->head_width());
  GpuMemory& partial_results = memory_->partial_results;
  const auto bytes = static_cast<size_t>(tables_->PartialResultBytes(step_->single_count()));
  if (partial_results.bytes() < bytes) {
    device_.ThrowUnlessOk(device_->Synchronize());
    partial_results = {};
    absl::StatusOr<GpuMemory> larger = GpuMemory::OnDevice(*device_, bytes, GpuMemoryUse::kKernels);
    device_.ThrowUnlessOk(larger.status());
    partial_results = *std::move(larger);
  }
  const cuda::DecodeAttention single = {.attention = attention,
                                        .rows = Of(step_->single_rows),
                                        .row_count = static_cast<int>(step_->single_count()),
                                        .max_blocks = static_cast<int>(blocks),
                                        .partial_outputs = partial_results.as<float>(),
                                        .partial_sums = partial_results.as<float>() + results * padded};
  device_.Launch(cuda::AttendToBlocksCall(single));
  device_.Launch(cuda::MergeBlocksCall(single));
}

absl::Span<const float> GpuBackend::EndStep(const at::Tensor& logits) {
  step_ = nullptr;
  if (!logits.defined()) return {};
  return device_.CopyToHost(logits);
}

// --- graphs ---

absl::Status GpuBackend::PrepareSteps(const StepLayers& layers) {
  if (tables_->shapes.empty()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(device_.ReportLoss(ReleaseGraphs()));
  const auto capture_all = [&]() -> absl::Status {
    LS_RETURN_IF_ERROR(ReserveMemoryOfGraphs());
    // Largest first: the memory that LibTorch reserves for it suffices for the others, which reuse it.
    for (auto shape = tables_->shapes.rbegin(); shape != tables_->shapes.rend(); ++shape) {
      LS_RETURN_IF_ERROR(CaptureGraph(*shape, layers));
    }
    return absl::OkStatus();
  };
  const absl::Status status = capture_all();
  if (!status.ok()) ReleaseGraphs().IgnoreError();
  std::reverse(graphs_.begin(), graphs_.end());
  return device_.ReportLoss(status);
}

// Waits first, because queued work may use the graphs.
absl::Status GpuBackend::ReleaseGraphs() {
  LS_RETURN_IF_ERROR(device_->Synchronize());
  graphs_.clear();
  return absl::OkStatus();
}

absl::Status GpuBackend::ReserveMemoryOfGraphs() {
  const GraphMemoryBytes& bytes = tables_->graph_memory_bytes;
  LS_RETURN_IF_ERROR(graph_memory_.upload.Reserve(bytes.numbers));
  const auto reserve = [&](GpuMemory& memory, int64_t needed, GpuMemoryUse use) -> absl::Status {
    if (memory.bytes() > 0) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(memory, GpuMemory::OnDevice(*device_, needed, use));
    return absl::OkStatus();
  };
  LS_RETURN_IF_ERROR(reserve(graph_memory_.partial_results, bytes.partial_results, GpuMemoryUse::kKernels));
  return reserve(graph_logits_, bytes.logits, GpuMemoryUse::kLibraryToo);
}

absl::Status GpuBackend::CaptureGraph(const StepShape& shape, const StepLayers& layers) {
  StepGraph* const graph = graphs_.emplace_back(std::make_unique<StepGraph>()).get();
  graph->shape = shape;
  graph->step = Pad({}, StepTiles({}), shape);
  graph->numbers = NumbersIn(graph_memory_, graph->step.plan.numbers.size());
  graph->logits =
      at::from_blob(graph_logits_.data(), {shape.rows, config().vocabulary_size}, device_.Options(at::kFloat));
  const auto body = [this, &graph = *graph, &layers]() -> absl::Status {
    try {
      QueueLayers(graph, layers);
    } catch (const std::exception& error) {
      return LibraryError("to capture a step as a graph", error);
    }
    return absl::OkStatus();
  };
  LS_RETURN_IF_ERROR(graph_memory_.Queue(graph->step));
  LS_RETURN_IF_ERROR(device_->BeforeLibraryCalls());
  // Libraries initialise themselves in the first run, which cannot be captured.
  LS_RETURN_IF_ERROR(body());
  LS_ASSIGN_OR_RETURN(graph->graph, device_->Capture(body));
  // A graph's first run is slower than the others.
  LS_RETURN_IF_ERROR(device_->Replay(*graph->graph));
  return device_->Synchronize();
}

void GpuBackend::QueueLayers(const StepGraph& graph, const StepLayers& layers) {
  const c10::InferenceMode inference;  // an emulated device calls this when it runs queued work
  Use(graph.step, graph_memory_);
  graph.logits.copy_(layers(graph.step.plan, graph.numbers));
}

StepOutput GpuBackend::RunStep(const StepPlan& plan, const StepLayers& layers) {
  const StepTiles tiles(plan);
  for (const std::unique_ptr<StepGraph>& graph : graphs_) {
    if (FitsIn(plan, tiles, graph->shape)) return {.logits = Replay(*graph, plan, tiles), .was_replayed = true};
  }
  return LanguageModelBackend::RunStep(plan, layers);
}

absl::Span<const float> GpuBackend::Replay(StepGraph& graph, const StepPlan& plan, const StepTiles& tiles) {
  device_.ThrowUnlessOk(graph_memory_.Queue(Pad(plan, tiles, graph.shape)));
  device_.ThrowUnlessOk(device_->Replay(*graph.graph));
  const int64_t floats = plan.logit_rows.size * config().vocabulary_size;
  if (floats == 0) return {};
  float* const logits = device_.HostLogits(floats);
  device_.ThrowUnlessOk(device_->Copy(logits, graph_logits_.data(), floats * sizeof(float)));
  device_.ThrowUnlessOk(device_->Synchronize());
  return {logits, static_cast<size_t>(floats)};
}

}  // namespace

absl::StatusOr<PreparedDevice> PrepareForGpu(Decoder& decoder, ModelGpu gpu, const std::function<void()>& between) {
  const int64_t head_width = decoder.config.model_width / decoder.config.heads;
  LS_RETURN_IF_ERROR(CheckHeadWidth(head_width));
  decoder.Move(gpu.tensors, between);
  const auto tables =
      std::make_shared<const SharedTables>(decoder, decoder.output.weight.scalar_type(), gpu.graphs.rows);
  for (DecoderLayer& layer : decoder.layers) layer.window_positions = layer.chunk_positions = {};
  const int64_t page_bytes = tables->PageLayout().page_bytes();
  const GraphMemoryBytes& graphs = tables->graph_memory_bytes;
  PreparedDevice prepared;
  prepared.rows_per_page = cuda::kPageRows;
  prepared.page_bytes = {
      .window = page_bytes, .segment = page_bytes, .open_chunk = tables->OpenChunkLayout().page_bytes()};
  // Zero memory has one page of each kind.
  prepared.workspace_bytes = graphs.numbers + graphs.partial_results + graphs.logits + 2 * page_bytes;
  prepared.cache_layout =
      absl::StrCat("gpu-1/", 8 * cuda::ElementBytes(tables->kernel_element()), "/", cuda::PaddedHeadWidth(head_width));
  prepared.new_backend = [tables, gpu = std::move(gpu)](const WorkerDevice&) {
    return GpuBackend::Create(tables, gpu);
  };
  return prepared;
}

}  // namespace longshort::models
