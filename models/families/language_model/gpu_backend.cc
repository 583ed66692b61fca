#include <algorithm>
#include <array>
#include <deque>
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

// The device runs one step while the host prepares the next one, or uses the logits of the last one.
constexpr int64_t kStepsAtOnce = 2;

// A step on the device.
struct BegunStep {
  std::unique_ptr<GpuEvent> begin, end;
  StepOutput output;  // valid once `end` has been waited for
};

class GpuBackend final : public LanguageModelBackend {
 public:
  static absl::StatusOr<std::unique_ptr<LanguageModelBackend>> Create(std::shared_ptr<const GpuDecoder> decoder,
                                                                      const ModelGpu& gpu) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuDevice> device, OpenDevice(gpu));
    std::unique_ptr<GpuBackend> backend(new GpuBackend(std::move(decoder), gpu, std::move(device)));
    LS_RETURN_IF_ERROR(backend->device_.ReportLoss(backend->AllocateZeroPages()));
    const c10::InferenceMode inference;
    const OneThread one_thread;
    const GpuBackend& made = *backend;
    made.device_.Run([&made] { WriteZeroPages(*made.decoder_, made.device_, made.cache()); });
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

  StepOutput RunStep(const StepPlan& plan) override {
    BeginStep(plan);
    return FinishStep();
  }
  void BeginStep(const StepPlan& plan) override {
    device_.Run([&] { QueueStep(plan); });
  }
  StepOutput FinishStep() override {
    return device_.Run([&] { return OutputOfFirst(); });
  }
  int64_t steps_at_once() const override { return kStepsAtOnce; }
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
  void QueueStep(const StepPlan& plan);
  // Waits for the first step that has begun.
  StepOutput OutputOfFirst();
  absl::Status ReserveMemory();
  absl::Status CaptureGraph(const StepShape& shape);
  absl::Status ReleaseGraphs();
  void Replay(StepGraph& graph, const StepPlan& plan, const StepTiles& tiles, float* logits);
  void RunWithoutGraph(const StepPlan& plan, float* logits);
  std::unique_ptr<GpuEvent> Record();
  // Host memory for the logits of the next step. Their step before the last one used it, and is finished.
  float* HostLogits(int64_t floats);

  const std::shared_ptr<const GpuDecoder> decoder_;
  WorkerGpu device_;
  GpuPages window_pages_, segment_pages_, open_chunks_;
  GpuMemory zero_window_page_, zero_segment_page_;
  StepMemory eager_memory_, graph_memory_;
  GpuMemory graph_logits_;                           // [rows of the largest graph, V]
  std::vector<std::unique_ptr<StepGraph>> graphs_;   // in the order of the shapes
  std::deque<BegunStep> begun_;                      // at most kStepsAtOnce
  std::array<GpuMemory, kStepsAtOnce> host_logits_;  // pinned, of the steps in turn
  size_t turn_ = 0;
};

absl::Status GpuBackend::AllocateZeroPages() {
  for (GpuMemory* page : {&zero_window_page_, &zero_segment_page_}) {
    LS_ASSIGN_OR_RETURN(*page, GpuMemory::OnDevice(*device_, window_pages_.page_bytes(), GpuMemoryUse::kKernels));
  }
  return absl::OkStatus();
}

std::unique_ptr<GpuEvent> GpuBackend::Record() {
  absl::StatusOr<std::unique_ptr<GpuEvent>> event = device_->Record();
  device_.ThrowUnlessOk(event.status());
  return *std::move(event);
}

float* GpuBackend::HostLogits(int64_t floats) {
  GpuMemory& memory = host_logits_[turn_++ % kStepsAtOnce];
  const size_t bytes = floats * sizeof(float);
  if (memory.bytes() < bytes) {
    absl::StatusOr<GpuMemory> larger = GpuMemory::Pinned(*device_, std::max(bytes, 2 * memory.bytes()));
    device_.ThrowUnlessOk(larger.status());
    memory = *std::move(larger);
  }
  return memory.as<float>();
}

void GpuBackend::QueueStep(const StepPlan& plan) {
  const int64_t floats = plan.logit_rows.size * decoder_->config.vocabulary_size;
  float* const logits = floats > 0 ? HostLogits(floats) : nullptr;
  BegunStep begun = {.begin = Record(), .end = nullptr, .output = {.logits = {logits, static_cast<size_t>(floats)}}};
  const StepTiles tiles(plan);
  const auto graph = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const auto& graph) { return FitsIn(plan, tiles, graph->shape); });
  begun.output.was_replayed = graph != graphs_.end();
  if (begun.output.was_replayed) {
    Replay(**graph, plan, tiles, logits);
  } else {
    RunWithoutGraph(plan, logits);
  }
  begun.end = Record();
  begun_.push_back(std::move(begun));
}

StepOutput GpuBackend::OutputOfFirst() {
  const BegunStep step = std::move(begun_.front());
  begun_.pop_front();
  device_.ThrowUnlessOk(device_->Wait(*step.end));
  const absl::StatusOr<absl::Duration> time = device_->Elapsed(*step.begin, *step.end);
  device_.ThrowUnlessOk(time.status());
  StepOutput output = step.output;
  output.device_time = *time;
  return output;
}

void GpuBackend::RunWithoutGraph(const StepPlan& plan, float* to) {
  const GpuStep step = MakeGpuStep(plan);
  // Before the first tensor, whose memory belongs to the thread's current stream.
  device_.ThrowUnlessOk(device_->BeforeLibraryCalls());
  device_.ThrowUnlessOk(eager_memory_.Queue(step));
  at::Tensor logits;
  if (plan.logit_rows.size > 0) {
    logits = at::empty({plan.logit_rows.size, decoder_->config.vocabulary_size}, device_.Options(at::kFloat));
  }
  QueueLayers(*decoder_, device_, cache(), step, eager_memory_, logits);
  if (logits.defined()) at::from_blob(to, logits.sizes(), at::kFloat).copy_(logits, /*non_blocking=*/true);
}

// --- graphs ---

absl::Status GpuBackend::PrepareSteps() {
  LS_RETURN_IF_ERROR(device_.ReportLoss(ReleaseGraphs()));
  const auto capture_all = [&]() -> absl::Status {
    LS_RETURN_IF_ERROR(ReserveMemory());
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

absl::Status GpuBackend::ReserveMemory() {
  const auto reserve = [&](GpuMemory& memory, int64_t needed, GpuMemoryUse use) -> absl::Status {
    if (memory.bytes() > 0 || needed == 0) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(memory, GpuMemory::OnDevice(*device_, needed, use));
    return absl::OkStatus();
  };
  const StepMemoryBytes &graphs = decoder_->graph_memory_bytes, &largest = decoder_->largest_step_bytes;
  LS_RETURN_IF_ERROR(eager_memory_.upload.Reserve(largest.numbers));
  LS_RETURN_IF_ERROR(reserve(eager_memory_.partial_results, largest.partial_results, GpuMemoryUse::kKernels));
  LS_RETURN_IF_ERROR(graph_memory_.upload.Reserve(graphs.numbers));
  LS_RETURN_IF_ERROR(reserve(graph_memory_.partial_results, graphs.partial_results, GpuMemoryUse::kKernels));
  return reserve(graph_logits_, graphs.logits, GpuMemoryUse::kLibraryToo);
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

void GpuBackend::Replay(StepGraph& graph, const StepPlan& plan, const StepTiles& tiles, float* logits) {
  device_.ThrowUnlessOk(graph_memory_.Queue(Pad(plan, tiles, graph.shape)));
  device_.ThrowUnlessOk(device_->Replay(*graph.graph));
  const size_t bytes = plan.logit_rows.size * decoder_->config.vocabulary_size * sizeof(float);
  if (bytes > 0) device_.ThrowUnlessOk(device_->Copy(logits, graph_logits_.data(), bytes));
}

}  // namespace

absl::StatusOr<PreparedDevice> PrepareForGpu(Decoder decoder, ModelGpu gpu, const std::function<void()>& between) {
  const int64_t head_width = decoder.config.model_width / decoder.config.heads;
  LS_RETURN_IF_ERROR(CheckHeadWidth(head_width));
  decoder.Move(gpu.tensors, between);
  const auto on_gpu = std::make_shared<const GpuDecoder>(std::move(decoder), gpu.graphs.rows);
  const int64_t page_bytes = on_gpu->PageLayout().page_bytes();
  const StepMemoryBytes &graphs = on_gpu->graph_memory_bytes, &largest = on_gpu->largest_step_bytes;
  PreparedDevice prepared;
  prepared.rows_per_page = cuda::kPageRows;
  prepared.page_bytes = {
      .window = page_bytes, .segment = page_bytes, .open_chunk = on_gpu->OpenChunkLayout().page_bytes()};
  // Zero memory has one page of each kind.
  prepared.workspace_bytes = graphs.numbers + graphs.partial_results + graphs.logits + largest.numbers +
                             largest.partial_results + 2 * page_bytes;
  prepared.step_limits = on_gpu->Limits();
  prepared.cache_layout =
      absl::StrCat("gpu-2/", 8 * cuda::ElementBytes(on_gpu->kernel_element()), "/", cuda::PaddedHeadWidth(head_width));
  prepared.new_backend = [on_gpu, gpu = std::move(gpu)](const WorkerDevice&) {
    return GpuBackend::Create(on_gpu, gpu);
  };
  return prepared;
}

}  // namespace longshort::models
