#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/page_storage.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/landmarks/dynamic_projection.h"
#include "models/ops/products/packed_matrix.h"

namespace longshort::models {
namespace {

// Row `row` of a float32 matrix, whose rows are contiguous each.
const float* Row(const at::Tensor& matrix, int64_t row) {
  return matrix.const_data_ptr<float>() + row * matrix.stride(0);
}
float* MutableRow(const at::Tensor& matrix, int64_t row) {
  return matrix.mutable_data_ptr<float>() + row * matrix.stride(0);
}

// The number of items, with `multiply_adds` each, that justify a thread: waking one costs some microseconds.
int64_t ItemsPerThread(int64_t multiply_adds) {
  constexpr int64_t kWorthAThread = 200'000;
  return std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, multiply_adds));
}

// The maximum number of queries of one piece of work, all of one slice and segment.
constexpr int64_t kQueriesPerRun = 64;

struct QueryRun {
  int64_t slice = 0;
  int64_t row = 0;  // the first, among the step's rows
  int64_t count = 0;
  int64_t position = 0;
  int64_t segment_start = 0;
};

struct HeadRange {
  int64_t first = 0;
  int64_t count = 0;
};

// A layer's results for the rows of a step: float32, each row contiguous.
struct LayerRows {
  at::Tensor input;              // [rows, d]: the input of keys and values
  at::Tensor keys_values;        // [rows, 2, d], before DualLN
  at::Tensor projection_logits;  // [rows, H*R]
  at::Tensor window;             // [rows, 2, d]: keys and values after the window's DualLN
  // Keys and values of chunks that become full, after DualLN, [full * R, 2, d]; undefined if there are none.
  at::Tensor memory;   // mix, then project: for later segments
  at::Tensor segment;  // project, then mix: for the chunk's own segment
};

// Chunks that become full, compressed to R vectors each: [full * R, ...].
struct MixedChunks {
  at::Tensor inputs;       // [full * R, d]
  at::Tensor keys_values;  // [full * R, 2, d]
};

// The weights, packed for products, and tables that depend on them alone, for all replicas.
template <typename Element>
struct CpuDecoder {
  CpuDecoder(Decoder unpacked, const std::function<void()>& between)
      : config(unpacked.config),
        pages{.layers = config.layers, .heads = config.heads, .head_width = config.model_width / config.heads},
        open_chunks{.layers = config.layers,
                    .chunk_size = config.chunk_size,
                    .row_floats = 3 * config.model_width + config.heads * config.chunk_rank},
        distances(unpacked),
        decoder(std::move(unpacked)) {
    decoder.Pack(between);
    for (DecoderLayer& layer : decoder.layers) layer.window_positions = layer.chunk_positions = {};
  }

  CachePages PageBytes() const {
    const int64_t bytes = pages.page_bytes<Element>();
    return {.window = bytes, .segment = bytes, .open_chunk = open_chunks.page_bytes()};
  }

  KeptMemory kept_memory;  // first, so that it is destroyed last
  LanguageModelConfig config;
  PageLayout pages;
  OpenChunkLayout open_chunks;
  DistanceTables<Element> distances;
  Decoder decoder;
};

// Element: of pages and position tables, float or cpu::BFloat16.
template <typename Element>
class CpuBackend final : public LanguageModelBackend {
 public:
  CpuBackend(std::shared_ptr<const CpuDecoder<Element>> decoder, int threads)
      : decoder_(std::move(decoder)),
        fits_tiles_(std::is_same_v<Element, cpu::BFloat16> && HasBFloat16Tiles() &&
                    cpu::FitsTiles(decoder_->pages.head_width, config().chunk_size, config().chunk_rank)),
        steps_(threads),
        window_pages_(decoder_->pages),
        segment_pages_(decoder_->pages),
        open_chunks_(decoder_->open_chunks) {
    WriteZeroRows();
  }

  absl::Status Allocate(const CachePages& pages) override;

  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override;
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override;
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override;

  StepOutput RunStep(const StepPlan& plan) override;

  void Rest() override {
    ReleaseThreads();
    kept_memory_.Rest();
  }

 private:
  const LanguageModelConfig& config() const { return decoder_->config; }
  const PageLayout& layout() const { return decoder_->pages; }
  // Writes the rows of zero memory, with which every sequence begins.
  void WriteZeroRows();
  absl::Span<char> PageMemory(PageKind kind, PageId page) const;
  // The maximum number of keys that a query sees.
  int64_t VisibleKeys() const;
  void PlanRuns();
  at::Tensor RunLayer(int64_t layer, const at::Tensor& hidden);
  // Mixes the chunks that become full, from rows of this step and rows on open chunk pages.
  // REQUIRES: a chunk becomes full; WriteRows has not been called for this layer.
  MixedChunks MixChunks(int64_t layer, const LayerRows& rows);
  // Writes every row to the places in the plan: window, memory, segment, or open chunk.
  void WriteRows(int64_t layer, const LayerRows& rows);
  // Attention of all rows of the step, queries [rows, d], scaled by 1/sqrt(head_dim): one softmax over the window and
  // the compressed vectors that each row sees. REQUIRES: WriteRows has been called for this layer.
  at::Tensor Attend(int64_t layer, const at::Tensor& queries) const;
  // Writes row i of `rows` [n, 2, d] to slots[i], for each i in begin .. end-1.
  static void WriteSlots(PageStorage<Element>& storage, int64_t layer, absl::Span<const int64_t> slots,
                         const at::Tensor& rows, int64_t begin, int64_t end);
  void KeepOpenRows(int64_t layer, const LayerRows& rows);
  // Of AttendRun, for all heads.
  int64_t ScratchFloats() const;
  // For these heads, which are adjacent in a page.
  void AttendRun(int64_t layer, const HeadRange& heads, const QueryRun& run, const at::Tensor& queries,
                 const at::Tensor& attended, float* scratch) const;
  cpu::KeyPages<Element> HeadPages(const PageStorage<Element>& storage, const StepPlan::PageTables& tables,
                                   int64_t slice, int64_t layer, int64_t head) const;

  KeptMemory kept_memory_;  // first, so that it is destroyed last
  const std::shared_ptr<const CpuDecoder<Element>> decoder_;
  // Whether runs of a few queries are attended to by tiles.
  const bool fits_tiles_;
  TimedSteps steps_;
  PageStorage<Element> window_pages_, segment_pages_;
  OpenChunkStorage open_chunks_;
  // The current step:
  const StepPlan* plan_ = nullptr;
  std::vector<QueryRun> runs_;
  at::Tensor logits_;  // valid until the next step
};

template <typename Element>
absl::Status CpuBackend<Element>::Allocate(const CachePages& pages) {
  LS_RETURN_IF_ERROR(window_pages_.Allocate(pages.window));
  LS_RETURN_IF_ERROR(segment_pages_.Allocate(pages.segment));
  return open_chunks_.Allocate(pages.open_chunk);
}

template <typename Element>
void CpuBackend<Element>::WriteZeroRows() {
  const c10::InferenceMode inference;
  const OneThread one_thread;
  const at::Tensor nothing = at::zeros({1, config().model_width});
  for (int64_t index = 0; index < config().layers; ++index) {
    const DecoderLayer& layer = decoder_->decoder.layers[index];
    const Projections zero = layer.Project(layer.AttentionInput(nothing));
    const auto write = [&](PageStorage<Element>& storage, const at::Tensor& row) {
      storage.WriteZeroRow(index, Row(row, 0), Row(row, 0) + config().model_width);
    };
    write(window_pages_, layer.window_norm(zero.keys_values));
    write(segment_pages_, layer.chunk_norm(zero.keys_values));
  }
}

template <typename Element>
absl::Span<char> CpuBackend<Element>::PageMemory(PageKind kind, PageId page) const {
  switch (kind) {
    case PageKind::kWindow:
      return absl::MakeSpan(window_pages_.PageMemory(page), window_pages_.page_bytes());
    case PageKind::kSegment:
      return absl::MakeSpan(segment_pages_.PageMemory(page), segment_pages_.page_bytes());
    case PageKind::kOpenChunk:
      break;
  }
  return absl::MakeSpan(open_chunks_.PageMemory(page), open_chunks_.page_bytes());
}

template <typename Element>
absl::Status CpuBackend<Element>::CopyPage(PageKind kind, PageId from, PageId to) {
  const absl::Span<const char> source = PageMemory(kind, from);
  if (from != to) std::memcpy(PageMemory(kind, to).data(), source.data(), source.size());
  return absl::OkStatus();
}

template <typename Element>
absl::StatusOr<std::string> CpuBackend<Element>::ReadPage(PageKind kind, PageId page, const PageRows& rows) const {
  const absl::Span<const char> source = PageMemory(kind, page);
  std::string bytes(source.data(), source.size());
  if (kind == PageKind::kOpenChunk) {
    open_chunks_.ClearOtherRows(rows, bytes.data());
  } else {
    layout().ClearOtherRows(rows, reinterpret_cast<Element*>(bytes.data()));
  }
  return bytes;
}

template <typename Element>
absl::Status CpuBackend<Element>::WritePage(PageKind kind, PageId page, std::string_view bytes) {
  std::memcpy(PageMemory(kind, page).data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

template <typename Element>
StepOutput CpuBackend<Element>::RunStep(const StepPlan& plan) {
  kept_memory_.Use();
  plan_ = &plan;
  PlanRuns();
  steps_.Begin(plan.rows());
  const Decoder& decoder = decoder_->decoder;
  // A view, which is never written.
  const auto numbers = [&](const StepPlan::Array& array) {
    return at::from_blob(const_cast<int64_t*>(plan.Of(array).data()), {array.size}, at::kLong);
  };
  at::Tensor hidden = decoder.Embed(numbers(plan.tokens));
  for (int64_t layer = 0; layer < config().layers; ++layer) hidden = RunLayer(layer, hidden);
  logits_ = at::Tensor();
  if (plan.logit_rows.size > 0) {
    logits_ = decoder.Logits(plan.are_all_logits_wanted ? hidden : hidden.index_select(0, numbers(plan.logit_rows)));
  }
  steps_.End();
  plan_ = nullptr;
  if (!logits_.defined()) return {};
  return {.logits = {logits_.const_data_ptr<float>(), static_cast<size_t>(logits_.numel())}};
}

template <typename Element>
at::Tensor CpuBackend<Element>::RunLayer(int64_t layer, const at::Tensor& hidden) {
  const DecoderLayer& weights = decoder_->decoder.layers[layer];
  const at::Tensor input = weights.AttentionInput(hidden);
  const Projections projections = weights.Project(input);
  LayerRows rows{.input = input,
                 .keys_values = projections.keys_values,
                 .projection_logits = projections.projection_logits,
                 .window = weights.window_norm(projections.keys_values),
                 .memory = {},
                 .segment = {}};
  if (plan_->full_chunks() > 0) {
    const MixedChunks mixed = MixChunks(layer, rows);
    rows.memory = weights.chunk_norm(weights.KeysAndValues(mixed.inputs));
    rows.segment = weights.chunk_norm(mixed.keys_values);
  }
  WriteRows(layer, rows);
  return weights.Finish(input, Attend(layer, projections.queries));
}

template <typename Element>
void CpuBackend<Element>::PlanRuns() {
  runs_.clear();
  const auto slices = plan_->Of(plan_->row_slices), positions = plan_->Of(plan_->positions);
  const auto segment_starts = plan_->Of(plan_->segment_starts);
  for (int64_t row = 0; row < plan_->rows(); ++row) {
    const bool begins = runs_.empty() || positions[row] % kQueriesPerRun == 0 || runs_.back().slice != slices[row] ||
                        runs_.back().segment_start != segment_starts[row];
    if (begins) {
      runs_.push_back({.slice = slices[row],
                       .row = row,
                       .count = 0,
                       .position = positions[row],
                       .segment_start = segment_starts[row]});
    }
    ++runs_.back().count;
  }
}

template <typename Element>
MixedChunks CpuBackend<Element>::MixChunks(int64_t layer, const LayerRows& rows) {
  const int64_t width = config().model_width, chunk_size = config().chunk_size, rank = config().chunk_rank;
  const int64_t heads = config().heads, full = plan_->full_chunks();
  const auto ends = plan_->Of(plan_->chunk_ends), kept_counts = plan_->Of(plan_->chunk_kept);
  const auto pages = plan_->Of(plan_->chunk_pages);
  const MixedChunks mixed = {.inputs = at::empty({full * rank, width}),
                             .keys_values = at::empty({full * rank, 2, width})};

  at::parallel_for(0, full, ItemsPerThread(3 * chunk_size * rank * width), [&](int64_t begin, int64_t end) {
    std::vector<const float*> pointers(4 * chunk_size);
    const auto part = [&](int64_t index) { return absl::MakeSpan(pointers).subspan(index * chunk_size, chunk_size); };
    std::vector<float> mixing(chunk_size * heads * rank);
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t i = 0; i < chunk_size; ++i) {
        const bool is_new = i >= kept_counts[n];
        const int64_t row = ends[n] - (chunk_size - 1 - i);
        const float* const kept = open_chunks_.Row(static_cast<PageId>(pages[n]), layer, i);
        part(0)[i] = is_new ? Row(rows.input, row) : kept;
        part(1)[i] = is_new ? Row(rows.keys_values, row) : kept + width;
        part(2)[i] = part(1)[i] + width;
        part(3)[i] = is_new ? Row(rows.projection_logits, row) : kept + 3 * width;
      }
      cpu::ChunkWeights(part(3), heads * rank, mixing.data());
      const auto mix = [&](int64_t index, float* to, int64_t stride) {
        cpu::MixChunk(part(index), mixing.data(), heads, rank, width / heads, to, stride);
      };
      mix(0, MutableRow(mixed.inputs, n * rank), width);
      mix(1, MutableRow(mixed.keys_values, n * rank), 2 * width);
      mix(2, MutableRow(mixed.keys_values, n * rank) + width, 2 * width);
    }
  });
  return mixed;
}

template <typename Element>
void CpuBackend<Element>::WriteRows(int64_t layer, const LayerRows& rows) {
  const int64_t grain = ItemsPerThread(config().model_width * 2);
  at::parallel_for(0, plan_->rows(), grain, [&](int64_t begin, int64_t end) {
    WriteSlots(window_pages_, layer, plan_->Of(plan_->window_slots), rows.window, begin, end);
  });
  at::parallel_for(0, plan_->memory_slots.size, grain, [&](int64_t begin, int64_t end) {
    WriteSlots(segment_pages_, layer, plan_->Of(plan_->memory_slots), rows.memory, begin, end);
    WriteSlots(segment_pages_, layer, plan_->Of(plan_->segment_slots), rows.segment, begin, end);
  });
  KeepOpenRows(layer, rows);
}

template <typename Element>
void CpuBackend<Element>::WriteSlots(PageStorage<Element>& storage, int64_t layer, absl::Span<const int64_t> slots,
                                     const at::Tensor& rows, int64_t begin, int64_t end) {
  const int64_t width = rows.size(2);
  for (int64_t i = begin; i < end; ++i) {
    storage.WriteRow(static_cast<PageId>(slots[i] / cpu::kPageRows), layer, slots[i] % cpu::kPageRows, Row(rows, i),
                     Row(rows, i) + width);
  }
}

template <typename Element>
void CpuBackend<Element>::KeepOpenRows(int64_t layer, const LayerRows& rows) {
  const auto kept_rows = plan_->Of(plan_->kept_rows), kept_slots = plan_->Of(plan_->kept_slots);
  const int64_t width = config().model_width, chunk_size = config().chunk_size;
  for (size_t i = 0; i < kept_rows.size(); ++i) {
    const int64_t row = kept_rows[i];
    float* kept = open_chunks_.Row(static_cast<PageId>(kept_slots[i] / chunk_size), layer, kept_slots[i] % chunk_size);
    kept = std::copy_n(Row(rows.input, row), width, kept);
    kept = std::copy_n(Row(rows.keys_values, row), 2 * width, kept);
    std::copy_n(Row(rows.projection_logits, row), config().heads * config().chunk_rank, kept);
  }
}

template <typename Element>
int64_t CpuBackend<Element>::VisibleKeys() const {
  const int64_t chunks = (config().memory_length + config().segment_length) / config().chunk_size;
  return config().window_length + chunks * config().chunk_rank;
}

template <typename Element>
at::Tensor CpuBackend<Element>::Attend(int64_t layer, const at::Tensor& queries) const {
  const at::Tensor attended = at::empty_like(queries);
  const int64_t heads = layout().heads;
  const auto longest = std::max_element(runs_.begin(), runs_.end(),
                                        [](const QueryRun& a, const QueryRun& b) { return a.count < b.count; });
  // Three products of a head's width per key: content, distance, value.
  const int64_t work = longest->count * VisibleKeys() * layout().head_width * 3;
  at::parallel_for(0, static_cast<int64_t>(runs_.size()) * heads, ItemsPerThread(work),
                   [&](int64_t begin, int64_t end) {
                     std::vector<float> scratch(ScratchFloats());
                     for (int64_t i = begin; i < end;) {
                       const HeadRange together = {.first = i % heads, .count = std::min(heads - i % heads, end - i)};
                       AttendRun(layer, together, runs_[i / heads], queries, attended, scratch.data());
                       i += together.count;
                     }
                   });
  return attended;
}

template <typename Element>
int64_t CpuBackend<Element>::ScratchFloats() const {
  const int64_t floats = cpu::AttentionScratchFloats(layout().head_width, layout().heads);
  return fits_tiles_ ? std::max(floats, cpu::TileScratchFloats(layout().head_width)) : floats;
}

template <typename Element>
void CpuBackend<Element>::AttendRun(int64_t layer, const HeadRange& heads, const QueryRun& run,
                                    const at::Tensor& queries, const at::Tensor& attended, float* scratch) const {
  const int64_t head_width = layout().head_width, chunk = config().chunk_size, rank = config().chunk_rank;
  const int64_t segment_vector = run.segment_start / chunk * rank;
  const cpu::AttentionRun<Element> attention = {
      .head_width = head_width,
      .window_length = config().window_length,
      .chunk_size = chunk,
      .chunk_rank = rank,
      .heads = heads.count,
      .queries = Row(queries, run.row) + heads.first * head_width,
      .output = MutableRow(attended, run.row) + heads.first * head_width,
      .stride = config().model_width,
      .count = run.count,
      .position = run.position,
      .window_bias = Row(decoder_->decoder.layers[layer].window_bias, heads.first),
      .relative_bias = Row(decoder_->decoder.layers[layer].relative_bias, heads.first),
      .first_vector = segment_vector - config().memory_length / chunk * rank,
      .segment_vector = segment_vector,
      .memory = HeadPages(segment_pages_, plan_->memory, run.slice, layer, heads.first),
      .segment = HeadPages(segment_pages_, plan_->segment, run.slice, layer, heads.first),
      .window = HeadPages(window_pages_, plan_->window, run.slice, layer, heads.first),
      .chunk_distances = decoder_->distances.Chunk(layer, heads.first),
      .window_distances = decoder_->distances.Window(layer, heads.first),
      .scratch = scratch,
  };
  if constexpr (std::is_same_v<Element, cpu::BFloat16>) {
    if (fits_tiles_ && run.count >= cpu::kQueriesForTiles) return cpu::AttendByTiles(attention);
  }
  cpu::Attend(attention);
}

template <typename Element>
cpu::KeyPages<Element> CpuBackend<Element>::HeadPages(const PageStorage<Element>& storage,
                                                      const StepPlan::PageTables& tables, int64_t slice, int64_t layer,
                                                      int64_t head) const {
  const auto first_ids = plan_->Of(tables.first_ids);
  return {.first = plan_->Of(tables.first_pages)[slice],
          .count = first_ids[slice + 1] - first_ids[slice],
          .ids = plan_->Of(tables.ids).data() + first_ids[slice],
          .pages = storage.FirstPage(layer),
          .zero_page = storage.ZeroPage(layer),
          .page_elements = layout().page_elements(),
          .key_offset = layout().key_offset(head),
          .value_offset = layout().value_offset(head),
          .head_elements = layout().head_elements()};
}

template <typename Element>
PreparedDevice DeviceOf(Decoder decoder, const std::function<void()>& between) {
  const auto prepared_decoder = std::make_shared<const CpuDecoder<Element>>(std::move(decoder), between);
  PreparedDevice prepared;
  prepared.rows_per_page = cpu::kPageRows;
  prepared.page_bytes = prepared_decoder->PageBytes();
  prepared.cache_layout = absl::StrCat("cpu-3/", 8 * sizeof(Element), "/", prepared_decoder->pages.padded_width());
  prepared.new_backend = [prepared_decoder](const WorkerDevice& worker) {
    return std::make_unique<CpuBackend<Element>>(prepared_decoder, worker.threads);
  };
  return prepared;
}

}  // namespace

PreparedDevice PrepareForCpu(Decoder decoder, const std::function<void()>& between) {
  const bool halves = decoder.product_type != at::kFloat;
  return halves ? DeviceOf<cpu::BFloat16>(std::move(decoder), between) : DeviceOf<float>(std::move(decoder), between);
}

}  // namespace longshort::models
