#include "models/families/language_model/gpu_step.h"

#include <algorithm>

#include "absl/types/span.h"
#include "models/device/model_gpu.h"
#include "models/device/pages.h"

namespace longshort::models {
namespace {

// The minimum for tiles. A tile reads a block's keys once for all of its rows; single rows use more of the GPU in
// parallel.
constexpr int64_t kMinTileRows = 8;

int64_t PageIds(const StepPlan& plan) { return plan.window.ids.size + plan.memory.ids.size + plan.segment.ids.size; }

// Page ids of one slice, except those of its own rows.
int64_t PageIdsOfSlice(const LanguageModelConfig& config) {
  const auto pages = [](int64_t rows) { return rows / cuda::kPageRows + 2; };
  const auto vectors = [&](int64_t tokens) { return tokens / config.chunk_size * config.chunk_rank; };
  return pages(config.window_length) + pages(vectors(config.memory_length + config.segment_length)) +
         pages(vectors(config.segment_length));
}

StepPlan::Array Append(absl::Span<const int64_t> from, std::vector<int64_t>& numbers) {
  const StepPlan::Array array = {.first = static_cast<int64_t>(numbers.size()),
                                 .size = static_cast<int64_t>(from.size())};
  numbers.insert(numbers.end(), from.begin(), from.end());
  return array;
}

// Appends a plan's arrays to the numbers of another plan, padded to given sizes.
class Padder final {
 public:
  Padder(const StepPlan& from, std::vector<int64_t>& numbers) : from_(from), numbers_(numbers) {}

  StepPlan::Array Put(const StepPlan::Array& array, int64_t size, int64_t filler) {
    return Put(from_.Of(array), size, filler);
  }
  StepPlan::Array Put(absl::Span<const int64_t> values, int64_t size, int64_t filler) {
    StepPlan::Array padded = Append(values, numbers_);
    padded.size = size;
    numbers_.resize(padded.first + size, filler);
    return padded;
  }
  // Pads a table without its ids. The ids of all tables are stored together; this table's begin at `first_id`.
  StepPlan::PageTables PutTable(const StepPlan::PageTables& table, int64_t rows, int64_t first_id) {
    StepPlan::PageTables padded;
    padded.first_pages = Put(table.first_pages, rows, 0);
    padded.first_ids = Put(table.first_ids, rows + 1, 0);
    for (int64_t i = 0; i < table.first_ids.size; ++i) numbers_[padded.first_ids.first + i] += first_id;
    return padded;
  }

 private:
  const StepPlan& from_;
  std::vector<int64_t>& numbers_;
};

}  // namespace

GpuStep MakeGpuStep(const StepPlan& plan) {
  const StepTiles tiles(plan);
  GpuStep step;
  step.plan = plan;
  step.single_rows = Append(tiles.of_rows().rows, step.plan.numbers);
  step.tiles = Append(tiles.of_rows().tiles, step.plan.numbers);
  return step;
}

StepShape LargestShape(const LanguageModelConfig& config, int64_t rows) {
  // Slices of one token have the most ids per row; 64 more tokens need one more page in each table. Sequences that
  // decode together may end their chunks in the same step.
  return {.rows = rows,
          .full_chunks = rows,
          .vectors = rows * config.chunk_rank,
          .page_ids = rows * PageIdsOfSlice(config),
          .single_rows = rows};
}

std::vector<StepShape> ShapesOfGraphs(const LanguageModelConfig& config, int64_t max_rows) {
  std::vector<StepShape> shapes;
  for (const int64_t rows : kStepRowBuckets) {
    if (rows > max_rows) break;
    StepShape shape = LargestShape(config, rows);
    StepShape& unfinished = shapes.emplace_back(shape);
    unfinished.full_chunks = unfinished.vectors = 0;
    shapes.push_back(shape);
    if (rows < kMinTileRows) continue;
    shape.tiles = rows / kMinTileRows;
    for (const int64_t single_rows : {int64_t{0}, rows / 2}) {
      shape.single_rows = single_rows;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

StepTiles::StepTiles(const StepPlan& plan)
    : of_rows_(cuda::TilesOf(plan.Of(plan.row_slices), plan.Of(plan.segment_starts), kMinTileRows)) {}

bool StepTiles::FitIn(const StepShape& shape) const {
  const auto tiles = static_cast<int64_t>(of_rows_.tiles.size()) / 2;
  return (tiles > 0) == (shape.tiles > 0) && tiles <= shape.tiles &&
         static_cast<int64_t>(of_rows_.rows.size()) <= shape.single_rows;
}

bool FitsIn(const StepPlan& plan, const StepTiles& tiles, const StepShape& shape) {
  return plan.rows() <= shape.rows && plan.full_chunks() <= shape.full_chunks && PageIds(plan) <= shape.page_ids &&
         tiles.FitIn(shape);
}

GpuStep Pad(const StepPlan& plan, const StepTiles& tiles, const StepShape& shape) {
  GpuStep step;
  StepPlan& padded = step.plan;
  Padder pad(plan, padded.numbers);
  padded.tokens = pad.Put(plan.tokens, shape.rows, 0);
  padded.positions = pad.Put(plan.positions, shape.rows, 0);
  padded.segment_starts = pad.Put(plan.segment_starts, shape.rows, 0);
  padded.row_slices = pad.Put(plan.row_slices, shape.rows, 0);
  padded.window_slots = pad.Put(plan.window_slots, shape.rows, -1);
  padded.kept_rows = pad.Put(plan.kept_rows, shape.rows, -1);
  padded.kept_slots = pad.Put(plan.kept_slots, shape.rows, 0);
  padded.chunk_ends = pad.Put(plan.chunk_ends, shape.full_chunks, -1);
  padded.chunk_kept = pad.Put(plan.chunk_kept, shape.full_chunks, 0);
  padded.chunk_pages = pad.Put(plan.chunk_pages, shape.full_chunks, 0);
  padded.memory_slots = pad.Put(plan.memory_slots, shape.vectors, -1);
  padded.segment_slots = pad.Put(plan.segment_slots, shape.vectors, -1);
  padded.logit_rows = pad.Put(plan.logit_rows, shape.rows, 0);
  step.single_rows = pad.Put(tiles.of_rows().rows, shape.single_rows, -1);
  step.tiles = pad.Put(tiles.of_rows().tiles, 2 * shape.tiles, 0);
  padded.window = pad.PutTable(plan.window, shape.rows, 0);
  padded.memory = pad.PutTable(plan.memory, shape.rows, plan.window.ids.size);
  padded.segment = pad.PutTable(plan.segment, shape.rows, plan.window.ids.size + plan.memory.ids.size);
  // The ids come last, so that only those in use are uploaded.
  const StepPlan::Array ids = {.first = static_cast<int64_t>(padded.numbers.size()), .size = shape.page_ids};
  for (StepPlan::PageTables StepPlan::*const table : {&StepPlan::window, &StepPlan::memory, &StepPlan::segment}) {
    Append(plan.Of((plan.*table).ids), padded.numbers);
    (padded.*table).ids = ids;
  }
  return step;
}

}  // namespace longshort::models
