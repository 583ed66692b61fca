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
#include "models/device/library.h"
#include "models/device/pages.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/gpu_decoder.h"
#include "models/families/language_model/gpu_step.h"

namespace longshort::models {
namespace {

class GpuBackend final : public LanguageModelBackend {
 public:
  static absl::StatusOr<std::unique_ptr<LanguageModelBackend>> Create(std::shared_ptr<const GpuDecoder> decoder,
                                                                      const ModelGpu& gpu) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuDevice> device, gpu.open());
    std::unique_ptr<GpuBackend> backend(new GpuBackend(std::move(decoder), gpu, std::move(device)));
    LS_RETURN_IF_ERROR(backend->device_.ReportLoss(backend->AllocateZeroPages()));
    const c10::InferenceMode inference;
    const OneThread one_thread;
    WriteZeroPages(*backend->decoder_, backend->device_, backend->cache());
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

  StepOutput RunStep(const StepPlan& plan) override;
  absl::Status PrepareSteps() override;

 private:
  GpuBackend(std::shared_ptr<const GpuDecoder> decoder, const ModelGpu& gpu, std::unique_ptr<GpuDevice> device)
      : decoder_(std::move(decoder)),
        device_(gpu, std::move(device)),
        window_pages_(*device_, decoder_->PageLayout()),
        segment_pages_(*device_, decoder_->PageLayout()),
        open_chunks_(*device_, decoder_->OpenChunkLayout()),
        eager_memory_(*device_),
        graph_memory_(*device_) {}

  GpuCache cache() const {
    return {.window = window_pages_.data(),
            .segment = segment_pages_.data(),
            .open_chunks = reinterpret_cast<float*>(open_chunks_.data()),
            .zero_window = zero_window_page_.data(),
            .zero_segment = zero_segment_page_.data()};
  }
  const GpuPages& PagesOf(PageKind kind) const {
    if (kind == PageKind::kOpenChunk) return open_chunks_;
    return kind == PageKind::kWindow ? window_pages_ : segment_pages_;
  }
  GpuPages& PagesOf(PageKind kind) { return const_cast<GpuPages&>(std::as_const(*this).PagesOf(kind)); }

  absl::Status AllocateZeroPages();
  absl::Status ReserveMemoryOfGraphs();
  absl::Status CaptureGraph(const StepShape& shape);
  absl::Status ReleaseGraphs();
  absl::Span<const float> Replay(StepGraph& graph, const StepPlan& plan, const StepTiles& tiles);

  const std::shared_ptr<const GpuDecoder> decoder_;
  WorkerGpu device_;
  GpuPages window_pages_, segment_pages_, open_chunks_;
  GpuMemory zero_window_page_, zero_segment_page_;
  StepMemory eager_memory_, graph_memory_;
  GpuMemory graph_logits_;                          // [rows of the largest graph, V]
  std::vector<std::unique_ptr<StepGraph>> graphs_;  // in the order of the shapes
};

absl::Status GpuBackend::AllocateZeroPages() {
  for (GpuMemory* page : {&zero_window_page_, &zero_segment_page_}) {
    LS_ASSIGN_OR_RETURN(*page, GpuMemory::OnDevice(*device_, window_pages_.page_bytes(), GpuMemoryUse::kKernels));
  }
  return absl::OkStatus();
}

StepOutput GpuBackend::RunStep(const StepPlan& plan) {
  const StepTiles tiles(plan);
  for (const std::unique_ptr<StepGraph>& graph : graphs_) {
    if (FitsIn(plan, tiles, graph->shape)) return {.logits = Replay(*graph, plan, tiles), .was_replayed = true};
  }
  const GpuStep step = MakeGpuStep(plan);
  // Before the first tensor, whose memory belongs to the thread's current stream.
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  device_.ThrowUnlessOk(eager_memory_.Queue(step));
  at::Tensor logits;
  if (plan.logit_rows.size > 0) {
    logits = at::empty({plan.logit_rows.size, decoder_->config.vocabulary_size}, device_.Options(at::kFloat));
  }
  QueueLayers(*decoder_, device_, cache(), step, eager_memory_, logits);
  return {.logits = logits.defined() ? device_.CopyToHost(logits) : absl::Span<const float>()};
}

// --- graphs ---

absl::Status GpuBackend::PrepareSteps() {
  if (decoder_->shapes.empty()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(device_.ReportLoss(ReleaseGraphs()));
  const auto capture_all = [&]() -> absl::Status {
    LS_RETURN_IF_ERROR(ReserveMemoryOfGraphs());
    // Largest first: the memory that LibTorch reserves for it suffices for the others, which reuse it.
    for (auto shape = decoder_->shapes.rbegin(); shape != decoder_->shapes.rend(); ++shape) {
      LS_RETURN_IF_ERROR(CaptureGraph(*shape));
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
  const GraphMemoryBytes& bytes = decoder_->graph_memory_bytes;
  LS_RETURN_IF_ERROR(graph_memory_.upload.Reserve(bytes.numbers));
  const auto reserve = [&](GpuMemory& memory, int64_t needed, GpuMemoryUse use) -> absl::Status {
    if (memory.bytes() > 0) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(memory, GpuMemory::OnDevice(*device_, needed, use));
    return absl::OkStatus();
  };
  LS_RETURN_IF_ERROR(reserve(graph_memory_.partial_results, bytes.partial_results, GpuMemoryUse::kKernels));
  return reserve(graph_logits_, bytes.logits, GpuMemoryUse::kLibraryToo);
}

absl::Status GpuBackend::CaptureGraph(const StepShape& shape) {
  StepGraph* const graph = graphs_.emplace_back(std::make_unique<StepGraph>()).get();
  graph->shape = shape;
  graph->step = Pad({}, StepTiles({}), shape);
  graph->logits =
      TensorIn(graph_logits_.data(), {shape.rows, decoder_->config.vocabulary_size}, device_.Options(at::kFloat));
  const auto body = [this, &graph = *graph]() -> absl::Status {
    try {
      const c10::InferenceMode inference;  // an emulated device calls this when it runs queued work
      QueueLayers(*decoder_, device_, cache(), graph.step, graph_memory_, graph.logits);
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

absl::Span<const float> GpuBackend::Replay(StepGraph& graph, const StepPlan& plan, const StepTiles& tiles) {
  device_.ThrowUnlessOk(graph_memory_.Queue(Pad(plan, tiles, graph.shape)));
  device_.ThrowUnlessOk(device_->Replay(*graph.graph));
  const int64_t floats = plan.logit_rows.size * decoder_->config.vocabulary_size;
  if (floats == 0) return {};
  float* const logits = device_.HostLogits(floats);
  device_.ThrowUnlessOk(device_->Copy(logits, graph_logits_.data(), floats * sizeof(float)));
  device_.ThrowUnlessOk(device_->Synchronize());
  return {logits, static_cast<size_t>(floats)};
}

}  // namespace

absl::StatusOr<PreparedDevice> PrepareForGpu(Decoder decoder, ModelGpu gpu, const std::function<void()>& between) {
  const int64_t head_width = decoder.config.model_width / decoder.config.heads;
  LS_RETURN_IF_ERROR(CheckHeadWidth(head_width));
  decoder.Move(gpu.tensors, between);
  const auto on_gpu = std::make_shared<const GpuDecoder>(std::move(decoder), gpu.graphs.rows);
  const int64_t page_bytes = on_gpu->PageLayout().page_bytes();
  const GraphMemoryBytes& graphs = on_gpu->graph_memory_bytes;
  PreparedDevice prepared;
  prepared.rows_per_page = cuda::kPageRows;
  prepared.page_bytes = {
      .window = page_bytes, .segment = page_bytes, .open_chunk = on_gpu->OpenChunkLayout().page_bytes()};
  // Zero memory has one page of each kind.
  prepared.workspace_bytes = graphs.numbers + graphs.partial_results + graphs.logits + 2 * page_bytes;
  prepared.cache_layout =
      absl::StrCat("gpu-2/", 8 * cuda::ElementBytes(on_gpu->kernel_element()), "/", cuda::PaddedHeadWidth(head_width));
  prepared.new_backend = [on_gpu, gpu = std::move(gpu)](const WorkerDevice&) {
    return GpuBackend::Create(on_gpu, gpu);
  };
  return prepared;
}

}  // namespace longshort::models
