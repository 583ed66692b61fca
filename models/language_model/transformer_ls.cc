#include "models/language_model/transformer_ls.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/kernels/cpu/chunk_mixing.h"
#include "models/layers/library_error.h"
#include "models/layers/library_threads.h"
#include "models/layers/parallel_for.h"

namespace longshort {
namespace {

// Row `row` of a float32 matrix, whose rows are contiguous each.
const float* Row(const at::Tensor& matrix, int64_t row) {
  return matrix.const_data_ptr<float>() + row * matrix.stride(0);
}
float* MutableRow(const at::Tensor& matrix, int64_t row) {
  return matrix.mutable_data_ptr<float>() + row * matrix.stride(0);
}

// How many items of so many multiply-adds each are worth a thread of their own: waking one costs some microseconds.
int64_t ItemsPerThread(int64_t multiply_adds) {
  constexpr int64_t kWorthAThread = 200'000;
  return std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, multiply_adds));
}

}  // namespace

template <typename Element>
TransformerLs<Element>::TransformerLs(Decoder decoder, LanguageModelInfo info, int threads)
    : decoder_(std::move(decoder)),
      info_(std::move(info)),
      threads_(threads),
      steps_(threads),
      distances_(decoder_),
      layout_{.layers = info_.layers, .heads = info_.heads, .head_width = info_.model_width / info_.heads},
      window_pages_(layout_),
      segment_pages_(layout_),
      open_chunks_(info_.layers, info_.chunk_size, 3 * info_.model_width + info_.heads * info_.chunk_rank) {
  decoder_.Pack();
  info_.rows_per_page = cpu::kPageRows;
  for (DecoderLayer& layer : decoder_.layers) {
    layer.window_positions = layer.chunk_positions = {};  // the distance tables are all that is needed of them
  }
  WriteZeroRows();
}

template <typename Element>
TransformerLs<Element>::TransformerLs(const TransformerLs& other, int threads)
    : decoder_(other.decoder_),
      info_(other.info_),
      threads_(threads),
      steps_(threads),
      distances_(other.distances_),
      layout_(other.layout_),
      window_pages_(layout_),
      segment_pages_(layout_),
      open_chunks_(info_.layers, info_.chunk_size, 3 * info_.model_width + info_.heads * info_.chunk_rank) {
  WriteZeroRows();
}

template <typename Element>
absl::StatusOr<std::unique_ptr<LanguageModel>> TransformerLs<Element>::Replicate(int threads) const {
  try {
    return std::unique_ptr<LanguageModel>(new TransformerLs(*this, threads == 0 ? threads_ : threads));
  } catch (const std::exception& error) {
    return LibraryError("to make a replica of the model", error);
  }
}

template <typename Element>
void TransformerLs<Element>::WriteZeroRows() {
  const c10::InferenceMode inference;
  const OneThread one_thread;
  for (int64_t index = 0; index < info_.layers; ++index) {
    const DecoderLayer& layer = decoder_.layers[index];
    const Projections zero = layer.Project(layer.AttentionInput(at::zeros({1, info_.model_width})));
    const at::Tensor in_window = layer.window_norm(zero.keys_values), in_segment = layer.chunk_norm(zero.keys_values);
    window_pages_.WriteZeroRow(index, Row(in_window, 0), Row(in_window, 0) + info_.model_width);
    segment_pages_.WriteZeroRow(index, Row(in_segment, 0), Row(in_segment, 0) + info_.model_width);
  }
}

template <typename Element>
CachePages TransformerLs<Element>::PageBytes() const {
  const int64_t page_bytes = layout_.page_elements() * static_cast<int64_t>(sizeof(Element));
  return {.window = page_bytes, .segment = page_bytes, .open_chunk = open_chunks_.page_bytes()};
}

template <typename Element>
absl::Status TransformerLs<Element>::AllocateCache(const CachePages& pages) {
  LS_RETURN_IF_ERROR(window_pages_.Allocate(pages.window));
  LS_RETURN_IF_ERROR(segment_pages_.Allocate(pages.segment));
  return open_chunks_.Allocate(pages.open_chunk);
}

template <typename Element>
absl::StatusOr<StepResult> TransformerLs<Element>::Step(absl::Span<const Slice> slices) {
  if (slices.empty()) return absl::InvalidArgumentError("a step needs at least 1 slice");
  LS_RETURN_IF_ERROR(CheckSlices(
      slices, info_,
      {.window = window_pages_.pages(), .segment = segment_pages_.pages(), .open_chunk = open_chunks_.pages()}));
  try {
    const StepPlan plan = PlanStep(slices, info_);
    return steps_.Run(plan.rows, [&] { return Run(slices, plan); });
  } catch (const std::exception& error) {
    return LibraryError(absl::StrCat("in a step of ", slices.size(), " slices"), error);
  }
}

template <typename Element>
void TransformerLs<Element>::Rest() {
  GiveBackThreads();
}

template <typename Element>
absl::StatusOr<absl::Span<char>> TransformerLs<Element>::PageMemory(PageKind kind, PageId page) const {
  const auto memory_of = [page](const auto& storage, const char* name) -> absl::StatusOr<absl::Span<char>> {
    if (page < 0 || page >= storage.pages()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " page ", page, " does not exist; the cache has ", storage.pages()));
    }
    return absl::MakeSpan(storage.PageMemory(page), storage.page_bytes());
  };
  switch (kind) {
    case PageKind::kWindow:
      return memory_of(window_pages_, "window");
    case PageKind::kSegment:
      return memory_of(segment_pages_, "segment");
    case PageKind::kOpenChunk:
      break;
  }
  return memory_of(open_chunks_, "open chunk");
}

template <typename Element>
absl::Status TransformerLs<Element>::CopyPage(PageKind kind, PageId from, PageId to) {
  if (from == kZeroPage) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const absl::Span<const char> source, PageMemory(kind, from));
  LS_ASSIGN_OR_RETURN(const absl::Span<char> target, PageMemory(kind, to));
  if (from != to) std::memcpy(target.data(), source.data(), source.size());
  return absl::OkStatus();
}

template <typename Element>
std::string TransformerLs<Element>::CacheLayout() const {
  return absl::StrCat("cpu-3/", 8 * sizeof(Element), "/", layout_.padded_width());
}

template <typename Element>
absl::StatusOr<std::string> TransformerLs<Element>::ReadPage(PageKind kind, PageId page, const PageRows& rows) const {
  LS_ASSIGN_OR_RETURN(const absl::Span<const char> source, PageMemory(kind, page));
  const int64_t page_rows = kind == PageKind::kOpenChunk ? info_.chunk_size : cpu::kPageRows;
  if (rows.first < 0 || rows.first > rows.end || rows.end > page_rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows ", rows.first, " to ", rows.end, " of a page that has ", page_rows));
  }
  std::string bytes(source.data(), source.size());
  if (kind == PageKind::kOpenChunk) {
    open_chunks_.ClearOtherRows(rows, bytes.data());
  } else {
    layout_.ClearOtherRows(rows, reinterpret_cast<Element*>(bytes.data()));
  }
  return bytes;
}

template <typename Element>
absl::Status TransformerLs<Element>::WritePage(PageKind kind, PageId page, std::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const absl::Span<char> target, PageMemory(kind, page));
  if (bytes.size() != target.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a page has ", target.size(), " bytes, not ", bytes.size()));
  }
  std::memcpy(target.data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

template <typename Element>
int64_t TransformerLs<Element>::VisibleKeys() const {
  return info_.window_length + (info_.memory_length + info_.segment_length) / info_.chunk_size * info_.chunk_rank;
}

template <typename Element>
StepResult TransformerLs<Element>::Run(absl::Span<const Slice> slices, const StepPlan& plan) {
  const c10::InferenceMode inference;
  const at::Tensor ids = at::empty({plan.rows}, at::kInt);
  int32_t* next_id = ids.mutable_data_ptr<int32_t>();
  for (const Slice& slice : slices) next_id = std::copy(slice.tokens.begin(), slice.tokens.end(), next_id);

  StepResult result;
  at::Tensor hidden = decoder_.Embed(ids);
  for (int64_t layer = 0; layer < info_.layers; ++layer) hidden = RunLayer(layer, slices, plan, hidden, result.counts);
  if (plan.logit_rows > 0) {
    logits_ = decoder_.Logits(LogitRows(slices, plan, hidden));
    result.logits = {logits_.const_data_ptr<float>(), static_cast<size_t>(logits_.numel())};
    result.counts.output_rows = plan.logit_rows;
  }
  return result;
}

template <typename Element>
at::Tensor TransformerLs<Element>::RunLayer(int64_t layer, absl::Span<const Slice> slices, const StepPlan& plan,
                                            const at::Tensor& hidden, StepCounts& counts) {
  const DecoderLayer& weights = decoder_.layers[layer];
  const at::Tensor input = weights.AttentionInput(hidden);
  const Projections projections = weights.Project(input);
  counts.projected_rows += plan.rows;
  NewRows rows{.queries = projections.queries,
               .attended = at::empty_like(projections.queries),
               .window = weights.window_norm(projections.keys_values),
               .compressed = {}};
  if (!plan.finished.empty()) {
    rows.compressed = FinishChunks(layer, slices, plan, input, projections);
    counts.compressed_rows += rows.compressed.memory.size(0);
  }
  KeepOpenRows(layer, slices, plan, input, projections);

  const int64_t heads = info_.heads;
  for (const std::vector<QueryRun>& round : plan.rounds) {
    const auto runs = static_cast<int64_t>(round.size());
    const int64_t queries = std::max_element(round.begin(), round.end(), [](const QueryRun& a, const QueryRun& b) {
                              return a.count < b.count;
                            })->count;
    at::parallel_for(0, runs, ItemsPerThread(queries * info_.model_width * 2), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) WriteRun(layer, slices[round[i].slice], plan, round[i], rows);
    });
    // Three products of a head's width for each key: content, distance, value.
    const int64_t attention_work = queries * VisibleKeys() * layout_.head_width * 3;
    at::parallel_for(0, runs * heads, ItemsPerThread(attention_work), [&](int64_t begin, int64_t end) {
      std::vector<float> scratch(cpu::AttentionScratchFloats(layout_.head_width, heads));
      for (int64_t i = begin; i < end;) {
        const QueryRun& run = round[i / heads];
        const HeadRange together = {.first = i % heads, .count = std::min(heads - i % heads, end - i)};
        AttendRun(layer, together, slices[run.slice], run, rows, scratch.data());
        i += together.count;
      }
    });
  }
  return weights.Finish(input, rows.attended);
}

template <typename Element>
auto TransformerLs<Element>::FinishChunks(int64_t layer, absl::Span<const Slice> slices, const StepPlan& plan,
                                          const at::Tensor& input, const Projections& projections) -> CompressedRows {
  const DecoderLayer& weights = decoder_.layers[layer];
  const int64_t width = info_.model_width, chunk_size = info_.chunk_size, rank = info_.chunk_rank, heads = info_.heads;
  const auto finished = static_cast<int64_t>(plan.finished.size());
  const at::Tensor inputs = at::empty({finished * rank, width}), keys_values = at::empty({finished * rank, 2, width});

  at::parallel_for(0, finished, ItemsPerThread(3 * chunk_size * rank * width), [&](int64_t begin, int64_t end) {
    std::vector<const float*> pointers(4 * chunk_size);
    const auto part = [&](int64_t index) { return absl::MakeSpan(pointers).subspan(index * chunk_size, chunk_size); };
    std::vector<float> mixing(chunk_size * heads * rank);
    for (int64_t n = begin; n < end; ++n) {
      const FinishedChunk& chunk = plan.finished[n];
      for (int64_t i = 0; i < chunk_size; ++i) {
        const int64_t row = chunk.last_row - (chunk_size - 1 - i);
        const bool is_new = row >= plan.first_rows[chunk.slice];
        const float* const kept = open_chunks_.Row(slices[chunk.slice].open_chunk, layer, i);
        part(0)[i] = is_new ? Row(input, row) : kept;
        part(1)[i] = is_new ? Row(projections.keys_values, row) : kept + width;
        part(2)[i] = part(1)[i] + width;
        part(3)[i] = is_new ? Row(projections.projection_logits, row) : kept + 3 * width;
      }
      cpu::ChunkWeights(part(3), heads * rank, mixing.data());
      const auto mix = [&](int64_t index, float* mixed, int64_t stride) {
        cpu::MixChunk(part(index), mixing.data(), heads, rank, width / heads, mixed, stride);
      };
      mix(0, MutableRow(inputs, n * rank), width);
      mix(1, MutableRow(keys_values, n * rank), 2 * width);
      mix(2, MutableRow(keys_values, n * rank) + width, 2 * width);
    }
  });
  return {.memory = weights.chunk_norm(weights.KeysAndValues(inputs)), .segment = weights.chunk_norm(keys_values)};
}

template <typename Element>
void TransformerLs<Element>::KeepOpenRows(int64_t layer, absl::Span<const Slice> slices, const StepPlan& plan,
                                          const at::Tensor& input, const Projections& projections) {
  for (size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    const int64_t end = slice.position + static_cast<int64_t>(slice.tokens.size());
    const int64_t open_begin = std::max(slice.position, end / info_.chunk_size * info_.chunk_size);
    for (int64_t position = open_begin; position < end; ++position) {
      const int64_t row = plan.first_rows[i] + position - slice.position;
      float* kept = open_chunks_.Row(slice.open_chunk, layer, position % info_.chunk_size);
      kept = std::copy_n(Row(input, row), info_.model_width, kept);
      kept = std::copy_n(Row(projections.keys_values, row), 2 * info_.model_width, kept);
      std::copy_n(Row(projections.projection_logits, row), info_.heads * info_.chunk_rank, kept);
    }
  }
}

template <typename Element>
void TransformerLs<Element>::WriteRun(int64_t layer, const Slice& slice, const StepPlan& plan, const QueryRun& run,
                                      const NewRows& rows) {
  const auto page_of = [](const PageRange& range, int64_t grid_row) {
    return range.ids[grid_row / cpu::kPageRows - range.first];
  };
  for (int64_t i = 0; i < run.count; ++i) {
    const int64_t position = run.position + i;
    window_pages_.WriteRow(page_of(slice.window_pages, position), layer, position % cpu::kPageRows,
                           Row(rows.window, run.row + i), Row(rows.window, run.row + i) + info_.model_width);
  }
  const CompressedRows& compressed = rows.compressed;
  for (int64_t n = run.first_finished; n < run.first_finished + run.finished_count; ++n) {
    for (int64_t t = 0; t < info_.chunk_rank; ++t) {
      const int64_t vector = plan.finished[n].chunk * info_.chunk_rank + t, row = n * info_.chunk_rank + t;
      segment_pages_.WriteRow(page_of(slice.memory_pages, vector), layer, vector % cpu::kPageRows,
                              Row(compressed.memory, row), Row(compressed.memory, row) + info_.model_width);
      segment_pages_.WriteRow(page_of(slice.segment_pages, vector), layer, vector % cpu::kPageRows,
                              Row(compressed.segment, row), Row(compressed.segment, row) + info_.model_width);
    }
  }
}

template <typename Element>
void TransformerLs<Element>::AttendRun(int64_t layer, const HeadRange& heads, const Slice& slice, const QueryRun& run,
                                       const NewRows& rows, float* scratch) {
  const DecoderLayer& weights = decoder_.layers[layer];
  const int64_t head_width = layout_.head_width, chunk = info_.chunk_size, rank = info_.chunk_rank;
  const int64_t segment_vector = run.segment_start / chunk * rank;
  cpu::Attend<Element>({
      .head_width = head_width,
      .window_length = info_.window_length,
      .chunk_size = chunk,
      .chunk_rank = rank,
      .heads = heads.count,
      .queries = Row(rows.queries, run.row) + heads.first * head_width,
      .output = MutableRow(rows.attended, run.row) + heads.first * head_width,
      .stride = info_.model_width,
      .count = run.count,
      .position = run.position,
      .window_bias = Row(weights.window_bias, heads.first),
      .relative_bias = Row(weights.relative_bias, heads.first),
      .first_vector = segment_vector - info_.memory_length / chunk * rank,
      .segment_vector = segment_vector,
      .memory = HeadPages(segment_pages_, slice.memory_pages, layer, heads.first),
      .segment = HeadPages(segment_pages_, slice.segment_pages, layer, heads.first),
      .window = HeadPages(window_pages_, slice.window_pages, layer, heads.first),
      .chunk_distances = distances_.Chunk(layer, heads.first),
      .window_distances = distances_.Window(layer, heads.first),
      .scratch = scratch,
  });
}

template <typename Element>
cpu::KeyPages<Element> TransformerLs<Element>::HeadPages(const PageStorage<Element>& storage, const PageRange& range,
                                                         int64_t layer, int64_t head) const {
  return {.first = range.first,
          .count = static_cast<int64_t>(range.ids.size()),
          .ids = range.ids.data(),
          .pages = storage.FirstPage(layer),
          .zero_page = storage.ZeroPage(layer),
          .page_elements = layout_.page_elements(),
          .key_offset = layout_.key_offset(head),
          .value_offset = layout_.value_offset(head),
          .head_elements = layout_.head_elements()};
}

template <typename Element>
at::Tensor TransformerLs<Element>::LogitRows(absl::Span<const Slice> slices, const StepPlan& plan,
                                             const at::Tensor& hidden) const {
  if (plan.logit_rows == plan.rows) return hidden;
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < slices.size(); ++i) {
    const int64_t count = slices[i].logit_rows,
                  end = plan.first_rows[i] + static_cast<int64_t>(slices[i].tokens.size());
    if (count > 0) parts.push_back(hidden.narrow(0, end - count, count));
  }
  return at::cat(parts);
}

template class TransformerLs<float>;
template class TransformerLs<cpu::BFloat16>;

}  // namespace longshort
