#include "models/language_model/gpu/gpu_backend.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/gpu/gpu_memory.h"
#include "models/kernels/cuda/cache_rows.h"
#include "models/kernels/cuda/causal_attention.h"
#include "models/kernels/cuda/pages.h"
#include "models/language_model/gpu/gpu_pages.h"
#include "models/language_model/gpu/step_upload.h"

namespace longshort {
namespace {

cuda::Rows RowsOf(const at::Tensor& rows) {
  return {.data = const_cast<void*>(rows.const_data_ptr()), .stride = rows.stride(0)};
}

// What one layer's attention needs beside rows and pages; tensors of the GPU.
struct LayerTables {
  at::Tensor window_bias, relative_bias;         // [H, head_dim], float32
  at::Tensor window_distances, chunk_distances;  // [H, count, padded head width], of the pages' type
};

// What is computed from the weights alone, for all replicas.
struct SharedTables {
  SharedTables(const Decoder& decoder, at::ScalarType element) : config(decoder.config), element(element) {
    const at::Tensor window_table = decoder.WindowPositionTable(), chunk_table = decoder.ChunkPositionTable();
    for (const DecoderLayer& layer : decoder.layers) {
      const RelativePositions positions = layer.Positions(window_table, chunk_table);
      layers.push_back({.window_bias = positions.window_bias.contiguous(),
                        .relative_bias = positions.relative_bias.contiguous(),
                        .window_distances = KernelLayout(positions.window),
                        .chunk_distances = KernelLayout(positions.chunk)});
    }
  }

  int64_t head_width() const { return config.model_width / config.heads; }
  int64_t memory_vectors() const { return config.memory_length / config.chunk_size * config.chunk_rank; }
  int64_t segment_vectors() const { return config.segment_length / config.chunk_size * config.chunk_rank; }
  cuda::ElementType kernel_element() const {
    return element == at::kFloat ? cuda::ElementType::kFloat : cuda::ElementType::kBFloat16;
  }

  LanguageModelConfig config;
  at::ScalarType element;
  std::vector<LayerTables> layers;

 private:
  // positions [count, heads, head_width] -> [heads, count, padded head width].
  at::Tensor KernelLayout(const at::Tensor& positions) const {
    const int64_t padding = cuda::PaddedHeadWidth(positions.size(2)) - positions.size(2);
    return at::constant_pad_nd(positions.transpose(0, 1), {0, padding}).to(element).contiguous();
  }
};

GpuPageLayout LayoutOfPages(const SharedTables& tables) {
  const LanguageModelConfig& config = tables.config;
  return {.parts = config.layers * config.heads * 2,
          .rows = cuda::kPageRows,
          .row_bytes = cuda::PaddedHeadWidth(tables.head_width()) * cuda::ElementBytes(tables.kernel_element())};
}

int64_t OpenRowFloats(const SharedTables& tables) {
  return cuda::OpenRowFloats(tables.config.model_width, tables.config.heads * tables.config.chunk_rank);
}

class GpuBackend final : public LanguageModelBackend {
 public:
  static absl::StatusOr<std::unique_ptr<LanguageModelBackend>> Create(std::shared_ptr<const SharedTables> tables,
                                                                      ModelGpu gpu) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuDevice> device, gpu.open());
    std::unique_ptr<GpuBackend> backend(new GpuBackend(std::move(tables), std::move(gpu), std::move(device)));
    LS_RETURN_IF_ERROR(backend->AllocateZeroPages());
    return backend;
  }
  ~GpuBackend() override {
    // What is queued uses memory that goes now. A device that is lost has nothing queued.
    device_->Synchronize().IgnoreError();
  }

  absl::StatusOr<std::unique_ptr<LanguageModelBackend>> Replicate(const WorkerDevice&) const override {
    return Create(tables_, gpu_);
  }

  int64_t RowsPerPage() const override { return cuda::kPageRows; }
  CachePages PageBytes() const override {
    return {.window = window_pages_.page_bytes(),
            .segment = segment_pages_.page_bytes(),
            .open_chunk = open_chunks_.page_bytes()};
  }
  std::string CacheLayout() const override {
    return absl::StrCat("gpu-1/", 8 * ElementBytes(tables_->kernel_element()), "/",
                        cuda::PaddedHeadWidth(tables_->head_width()));
  }

  absl::Status Allocate(const CachePages& pages) override {
    LS_RETURN_IF_ERROR(Noted(window_pages_.Allocate(pages.window)));
    LS_RETURN_IF_ERROR(Noted(segment_pages_.Allocate(pages.segment)));
    return Noted(open_chunks_.Allocate(pages.open_chunk));
  }
  void WriteZeroRows(int64_t layer, const at::Tensor& in_window, const at::Tensor& in_segment) override;

  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override { return Noted(PagesOf(kind).Copy(from, to)); }
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override {
    absl::StatusOr<std::string> bytes = PagesOf(kind).Read(page, rows);
    Noted(bytes.status()).IgnoreError();
    return bytes;
  }
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override {
    return Noted(PagesOf(kind).Write(page, bytes));
  }

  at::Tensor BeginStep(const StepPlan& plan) override;
  MixedChunks MixChunks(int64_t layer, const LayerRows& rows) override;
  void WriteRows(int64_t layer, const LayerRows& rows) override;
  at::Tensor Attend(int64_t layer, const at::Tensor& queries) override;
  absl::Span<const float> EndStep(const at::Tensor& logits) override;

 private:
  GpuBackend(std::shared_ptr<const SharedTables> tables, ModelGpu gpu, std::unique_ptr<GpuDevice> device)
      : tables_(std::move(tables)),
        gpu_(std::move(gpu)),
        device_(std::move(device)),
        window_pages_(*device_, LayoutOfPages(*tables_)),
        segment_pages_(*device_, LayoutOfPages(*tables_)),
        open_chunks_(*device_, {.parts = config().layers,
                                .rows = config().chunk_size,
                                .row_bytes = OpenRowFloats(*tables_) * static_cast<int64_t>(sizeof(float))}),
        upload_(*device_) {}

  const LanguageModelConfig& config() const { return tables_->config; }
  int heads() const { return static_cast<int>(config().heads); }
  // Of one layer's part of a window or segment page.
  int64_t LayerBytes() const { return window_pages_.page_bytes() / config().layers; }
  int64_t PageElements() const { return config().layers * cuda::LayerElements(config().heads, tables_->head_width()); }
  const GpuPages& PagesOf(PageKind kind) const {
    if (kind == PageKind::kOpenChunk) return open_chunks_;
    return kind == PageKind::kWindow ? window_pages_ : segment_pages_;
  }
  GpuPages& PagesOf(PageKind kind) { return const_cast<GpuPages&>(std::as_const(*this).PagesOf(kind)); }

  // The status; if it is the GPU's loss, that is told.
  absl::Status Noted(absl::Status status) const {
    if (!status.ok() && device_->has_failed()) {
      gpu_.loss->Tell(absl::StrCat(device_->facts().name, ": ", std::string(status.message())));
    }
    return status;
  }
  // Of the verbs that return no status: LanguageModelBackend says that they throw.
  void ThrowUnlessOk(const absl::Status& status) const {
    if (Noted(status).ok()) return;
    // What is queued reads tensors that go with the step. It has to run before they do, where LibTorch's calls do not
    // wait for it.
    device_->BeforeLibraryCalls().IgnoreError();
    throw std::runtime_error(std::string(status.message()));
  }

  absl::Status AllocateZeroPages();
  void Launch(const KernelCall& call) { ThrowUnlessOk(device_->Launch(call)); }
  // Writes `rows` [n, 2, d] where `slots` says, [n] on the device: to a layer's part of pages that begin at `pages`.
  void Append(int64_t layer, const cuda::Rows& rows, const int64_t* slots, int64_t count, char* pages);
  cuda::ChunkRows ChunkRowsOf(int64_t layer, const LayerRows& rows) const;
  cuda::KeyPages KeyPagesOf(const StepPlan::PageTables& pages, int64_t layer, const char* first,
                            const char* zero) const;
  void AttendSingleRows(const cuda::CausalAttention& attention);

  const std::shared_ptr<const SharedTables> tables_;
  const ModelGpu gpu_;
  const std::unique_ptr<GpuDevice> device_;
  GpuPages window_pages_, segment_pages_, open_chunks_;
  GpuMemory zero_window_page_, zero_segment_page_;
  GpuMemory partial_results_;  // of single rows
  StepUpload upload_;
  GpuMemory logits_;                // pinned; until the next step
  const StepPlan* plan_ = nullptr;  // of the step
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
  ThrowUnlessOk(device_->Synchronize());  // the tensors go
}

void GpuBackend::Append(int64_t layer, const cuda::Rows& rows, const int64_t* slots, int64_t count, char* pages) {
  Launch(cuda::AppendRowsCall({.row = cuda::ElementType::kFloat,
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
  plan_ = &plan;
  ThrowUnlessOk(upload_.Queue(plan));
  ThrowUnlessOk(device_->BeforeLibraryCalls());
  return at::from_blob(upload_.numbers(), {static_cast<int64_t>(plan.numbers.size())},
                       tables_->layers.front().window_bias.options().dtype(at::kLong));
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
              reinterpret_cast<float*>(open_chunks_.data()) + layer * config().chunk_size * OpenRowFloats(*tables_),
          .page_floats = config().layers * config().chunk_size * OpenRowFloats(*tables_)};
}

MixedChunks GpuBackend::MixChunks(int64_t layer, const LayerRows& rows) {
  const int64_t vectors = plan_->full_chunks() * config().chunk_rank, width = config().model_width;
  const MixedChunks mixed = {.inputs = at::empty({vectors, width}, rows.input.options()),
                             .keys_values = at::empty({vectors, 2, width}, rows.input.options())};
  Launch(cuda::MixChunksCall({.rows = ChunkRowsOf(layer, rows),
                              .chunk_ends = upload_.Of(plan_->chunk_ends),
                              .chunk_kept = upload_.Of(plan_->chunk_kept),
                              .chunk_pages = upload_.Of(plan_->chunk_pages),
                              .count = plan_->full_chunks(),
                              .mixed_inputs = RowsOf(mixed.inputs),
                              .mixed_keys_values = RowsOf(mixed.keys_values)}));
  ThrowUnlessOk(device_->BeforeLibraryCalls());
  return mixed;
}

void GpuBackend::WriteRows(int64_t layer, const LayerRows& rows) {
  Append(layer, RowsOf(rows.window), upload_.Of(plan_->window_slots), plan_->rows(), window_pages_.data());
  if (plan_->full_chunks() > 0) {
    const int64_t vectors = plan_->memory_slots.size;
    Append(layer, RowsOf(rows.memory), upload_.Of(plan_->memory_slots), vectors, segment_pages_.data());
    Append(layer, RowsOf(rows.segment), upload_.Of(plan_->segment_slots), vectors, segment_pages_.data());
  }
  Launch(cuda::KeepRowsCall({.rows = ChunkRowsOf(layer, rows),
                             .kept_rows = upload_.Of(plan_->kept_rows),
                             .kept_slots = upload_.Of(plan_->kept_slots),
                             .count = plan_->kept_rows.size}));
  ThrowUnlessOk(device_->BeforeLibraryCalls());
}

cuda::KeyPages GpuBackend::KeyPagesOf(const StepPlan::PageTables& pages, int64_t layer, const char* first,
                                      const char* zero) const {
  return {.table = {.first_pages = upload_.Of(pages.first_pages),
                    .first_ids = upload_.Of(pages.first_ids),
                    .ids = upload_.Of(pages.ids)},
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
      .positions = upload_.Of(plan_->positions),
      .segment_starts = upload_.Of(plan_->segment_starts),
      .row_slices = upload_.Of(plan_->row_slices),
      .memory = KeyPagesOf(plan_->memory, layer, segment_pages_.data(), zero_segment_page_.data()),
      .segment = KeyPagesOf(plan_->segment, layer, segment_pages_.data(), zero_segment_page_.data()),
      .window = KeyPagesOf(plan_->window, layer, window_pages_.data(), zero_window_page_.data()),
      .page_elements = PageElements(),
      .queries = queries.const_data_ptr(),
      .query_stride = queries.stride(0),
      .output = attended.mutable_data_ptr(),
      .output_stride = attended.stride(0),
  };
  if (upload_.tile_count() > 0) {
    Launch(cuda::PromptAttentionCall(
        {.attention = attention, .tiles = upload_.tiles(), .tile_count = static_cast<int>(upload_.tile_count())}));
  }
  if (upload_.single_count() > 0) AttendSingleRows(attention);
  ThrowUnlessOk(device_->BeforeLibraryCalls());
  return attended;
}

void GpuBackend::AttendSingleRows(const cuda::CausalAttention& attention) {
  const int64_t blocks =
      cuda::MostKeyBlocks(config().window_length, tables_->memory_vectors(), tables_->segment_vectors());
  const int64_t results = upload_.single_count() * config().heads * blocks;
  const int64_t padded = cuda::PaddedHeadWidth(tables_->head_width());
  const size_t bytes = results * (padded + 2) * sizeof(float);
  if (partial_results_.bytes() < bytes) {
    ThrowUnlessOk(device_->Synchronize());
    partial_results_ = {};
    absl::StatusOr<GpuMemory> larger = GpuMemory::OnDevice(*device_, bytes, GpuMemoryUse::kKernels);
    ThrowUnlessOk(larger.status());
    partial_results_ = *std::move(larger);
  }
  const cuda::DecodeAttention single = {.attention = attention,
                                        .rows = upload_.single_rows(),
                                        .row_count = static_cast<int>(upload_.single_count()),
                                        .most_blocks = static_cast<int>(blocks),
                                        .partial_outputs = partial_results_.as<float>(),
                                        .partial_sums = partial_results_.as<float>() + results * padded};
  Launch(cuda::AttendToBlocksCall(single));
  Launch(cuda::MergeBlocksCall(single));
}

absl::Span<const float> GpuBackend::EndStep(const at::Tensor& logits) {
  plan_ = nullptr;
  if (!logits.defined()) return {};
  const size_t bytes = logits.numel() * sizeof(float);
  if (logits_.bytes() < bytes) {
    ThrowUnlessOk(device_->Synchronize());
    absl::StatusOr<GpuMemory> larger = GpuMemory::Pinned(*device_, bytes);
    ThrowUnlessOk(larger.status());
    logits_ = *std::move(larger);
  }
  at::from_blob(logits_.data(), logits.sizes(), at::kFloat).copy_(logits, /*non_blocking=*/true);
  ThrowUnlessOk(device_->Synchronize());
  return {logits_.as<float>(), static_cast<size_t>(logits.numel())};
}

void MoveTo(const at::Device& device, at::Tensor& tensor) {
  if (tensor.defined()) tensor = tensor.to(device);
}
void MoveTo(const at::Device& device, Linear& map) {
  MoveTo(device, map.weight);
  MoveTo(device, map.bias);
}
void MoveTo(const at::Device& device, LayerNorm& norm) {
  MoveTo(device, norm.gain);
  MoveTo(device, norm.bias);
}

void MoveTo(const at::Device& device, Decoder& decoder, const std::function<void()>& between) {
  MoveTo(device, decoder.embedding);
  MoveTo(device, decoder.output);
  MoveTo(device, decoder.inverse_frequencies);
  for (DecoderLayer& layer : decoder.layers) {
    between();
    for (Linear* const map : {&layer.query_and_logits, &layer.key_and_value, &layer.output, &layer.window_positions,
                              &layer.chunk_positions, &layer.feed_forward_in, &layer.feed_forward_out}) {
      MoveTo(device, *map);
    }
    for (LayerNorm* const norm : {&layer.window_norm, &layer.chunk_norm, &layer.norm1, &layer.norm2}) {
      MoveTo(device, *norm);
    }
    MoveTo(device, layer.window_bias);
    MoveTo(device, layer.relative_bias);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LanguageModelBackend>> MakeGpuBackend(Decoder& decoder, ModelGpu gpu,
                                                                     const std::function<void()>& between) {
  const int64_t head_width = decoder.config.model_width / decoder.config.heads;
  if (head_width > cuda::kMostHeadWidth) {
    return absl::UnimplementedError(absl::StrCat("the model's heads are ", head_width, " wide; on a GPU they may be ",
                                                 cuda::kMostHeadWidth, " at the most; run it on the CPU"));
  }
  MoveTo(gpu.tensors, decoder, between);
  auto tables = std::make_shared<const SharedTables>(decoder, decoder.output.weight.scalar_type());
  for (DecoderLayer& layer : decoder.layers) layer.window_positions = layer.chunk_positions = {};
  return GpuBackend::Create(std::move(tables), std::move(gpu));
}

}  // namespace longshort
