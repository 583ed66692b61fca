#include "models/families/language_model/step_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort::models {
namespace {

int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

absl::Status Broken(size_t slice, const char* field, int64_t value, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrFormat("slice %d: %s is %d; %s", slice, field, value, rule));
}

// Every page from row `first` to row `end - 1` must exist; rows from `first_written` on are new.
absl::Status CheckPages(size_t slice, const char* field, const PageRange& range, int64_t page_rows, int64_t first,
                        int64_t first_written, int64_t end, int64_t page_count) {
  if (first < end) {
    const int64_t first_page = FloorDivide(first, page_rows), last_page = FloorDivide(end - 1, page_rows);
    if (range.first > first_page)
      return Broken(slice, field, range.first, absl::StrFormat("must begin at page %d or before", first_page));
    const int64_t range_end = range.first + static_cast<int64_t>(range.ids.size());
    if (range_end <= last_page)
      return Broken(slice, field, range_end, absl::StrFormat("must end after page %d", last_page));
  }
  for (size_t i = 0; i < range.ids.size(); ++i) {
    const int64_t page = range.first + static_cast<int64_t>(i);
    const bool must_be_zero = page < 0;
    const bool may_be_zero = (page + 1) * page_rows <= first_written;
    const bool exists = range.ids[i] >= 0 && range.ids[i] < page_count;
    if (must_be_zero ? range.ids[i] != kZeroPage : !exists && !(may_be_zero && range.ids[i] == kZeroPage)) {
      return Broken(slice, field, range.ids[i],
                    absl::StrFormat("page %d must be %s", page,
                                    must_be_zero ? "the zero page" : absl::StrFormat("in [0, %d)", page_count)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSlice(size_t index, const Slice& slice, const LanguageModelInfo& info, const CachePages& pages) {
  const auto tokens = static_cast<int64_t>(slice.tokens.size());
  if (tokens == 0) return Broken(index, "token count", 0, "at least 1 is needed");
  for (const int32_t token : slice.tokens) {
    if (token < 0 || token >= info.vocabulary_size) {
      return Broken(index, "token", token, absl::StrFormat("must be in [0, %d)", info.vocabulary_size));
    }
  }
  if (slice.position < 0) return Broken(index, "position", slice.position, "must be at least 0");
  const int64_t start = slice.segment_start, chunk = info.chunk_size;
  if (start < 0 || start > slice.position || slice.position - start >= info.segment_length || start % chunk != 0) {
    return Broken(index, "segment_start", start,
                  absl::StrFormat("must be a multiple of %d in (position - %d, position], position being %d", chunk,
                                  info.segment_length, slice.position));
  }
  if (slice.logit_rows < 0 || slice.logit_rows > tokens) {
    return Broken(index, "logit_rows", slice.logit_rows, absl::StrFormat("must be in [0, %d]", tokens));
  }
  if (slice.open_chunk < 0 || slice.open_chunk >= pages.open_chunk) {
    return Broken(index, "open_chunk", slice.open_chunk, absl::StrFormat("must be in [0, %d)", pages.open_chunk));
  }
  const int64_t end = slice.position + tokens, end_vector = end / chunk * info.chunk_rank;
  const int64_t segment_vector = start / chunk * info.chunk_rank;
  const int64_t first_new_vector = slice.position / chunk * info.chunk_rank;
  const int64_t first_vector = segment_vector - info.memory_length / chunk * info.chunk_rank;
  const int64_t page_rows = info.rows_per_page;
  LS_RETURN_IF_ERROR(CheckPages(index, "window_pages", slice.window_pages, page_rows,
                                slice.position - info.window_length + 1, slice.position, end, pages.window));
  LS_RETURN_IF_ERROR(CheckPages(index, "memory_pages", slice.memory_pages, page_rows, first_vector, first_new_vector,
                                end_vector, pages.segment));
  return CheckPages(index, "segment_pages", slice.segment_pages, page_rows, segment_vector, first_new_vector,
                    end_vector, pages.segment);
}

int64_t EndOf(const Slice& slice) { return slice.position + static_cast<int64_t>(slice.tokens.size()); }

// Appends arrays to a plan's numbers. A function returns the number of each row, chunk or vector.
class PlanWriter final {
 public:
  PlanWriter(absl::Span<const Slice> slices, const LanguageModelInfo& info, std::vector<int64_t>& numbers)
      : slices_(slices), info_(info), numbers_(numbers) {}

  // Appends number(slice, position, row) of every row.
  template <typename Number>
  StepPlan::Array Rows(const Number& number) {
    return RowsFrom([](const Slice& slice) { return slice.position; }, number);
  }
  // The same for rows whose chunk stays open.
  template <typename Number>
  StepPlan::Array KeptRows(const Number& number) {
    const auto first_kept = [this](const Slice& slice) {
      return std::max(slice.position, EndOf(slice) / info_.chunk_size * info_.chunk_size);
    };
    return RowsFrom(first_kept, number);
  }
  // The same for rows whose logits are requested.
  template <typename Number>
  StepPlan::Array LogitRows(const Number& number) {
    return RowsFrom([](const Slice& slice) { return EndOf(slice) - slice.logit_rows; }, number);
  }
  // Appends number(slice, chunk, row of its last token) of every chunk that becomes full.
  template <typename Number>
  StepPlan::Array Chunks(const Number& number) {
    return ForEachSlice([&](const Slice& slice, int64_t first_row) {
      const int64_t end = EndOf(slice) / info_.chunk_size;
      for (int64_t chunk = slice.position / info_.chunk_size; chunk < end; ++chunk) {
        Put(number(slice, chunk, first_row + (chunk + 1) * info_.chunk_size - 1 - slice.position));
      }
    });
  }
  // Appends the slots of those chunks' vectors on these pages.
  StepPlan::Array VectorSlots(PageRange Slice::*pages) {
    return ForEachSlice([&](const Slice& slice, int64_t) {
      const int64_t end = EndOf(slice) / info_.chunk_size * info_.chunk_rank;
      int64_t vector = slice.position / info_.chunk_size * info_.chunk_rank;
      for (; vector < end; ++vector) Put(Slot(slice.*pages, vector));
    });
  }
  StepPlan::PageTables Tables(PageRange Slice::*pages) {
    StepPlan::PageTables tables;
    tables.first_pages = ForEachSlice([&](const Slice& slice, int64_t) { Put((slice.*pages).first); });
    int64_t ids = 0;
    Put(ids);
    tables.first_ids =
        ForEachSlice([&](const Slice& slice, int64_t) { Put(ids += static_cast<int64_t>((slice.*pages).ids.size())); });
    --tables.first_ids.first;
    ++tables.first_ids.size;
    tables.ids = ForEachSlice([&](const Slice& slice, int64_t) {
      numbers_.insert(numbers_.end(), (slice.*pages).ids.begin(), (slice.*pages).ids.end());
    });
    return tables;
  }

  // The slot of a row of the grid.
  int64_t Slot(const PageRange& pages, int64_t grid_row) const {
    const int64_t page = grid_row / info_.rows_per_page;
    return pages.ids[page - pages.first] * info_.rows_per_page + grid_row % info_.rows_per_page;
  }
  int64_t IndexOf(const Slice& slice) const { return &slice - slices_.data(); }

 private:
  void Put(int64_t number) { numbers_.push_back(number); }

  // Calls put(slice, its first row in the step), which appends the slice's numbers.
  template <typename PutOfSlice>
  StepPlan::Array ForEachSlice(const PutOfSlice& put) {
    const auto first = static_cast<int64_t>(numbers_.size());
    int64_t row = 0;
    for (const Slice& slice : slices_) {
      put(slice, row);
      row += static_cast<int64_t>(slice.tokens.size());
    }
    return {.first = first, .size = static_cast<int64_t>(numbers_.size()) - first};
  }
  template <typename First, typename Number>
  StepPlan::Array RowsFrom(const First& first, const Number& number) {
    return ForEachSlice([&](const Slice& slice, int64_t first_row) {
      for (int64_t position = first(slice); position < EndOf(slice); ++position) {
        Put(number(slice, position, first_row + position - slice.position));
      }
    });
  }

  absl::Span<const Slice> slices_;
  const LanguageModelInfo& info_;
  std::vector<int64_t>& numbers_;
};

}  // namespace

absl::Status CheckSlices(absl::Span<const Slice> slices, const LanguageModelInfo& info, const CachePages& pages) {
  for (size_t i = 0; i < slices.size(); ++i) LS_RETURN_IF_ERROR(CheckSlice(i, slices[i], info, pages));
  return absl::OkStatus();
}

StepPlan PlanStep(absl::Span<const Slice> slices, const LanguageModelInfo& info) {
  const int64_t chunk_size = info.chunk_size, segment_length = info.segment_length;
  StepPlan plan;
  PlanWriter write(slices, info, plan.numbers);
  plan.tokens = write.Rows(
      [](const Slice& slice, int64_t position, int64_t) -> int64_t { return slice.tokens[position - slice.position]; });
  plan.positions = write.Rows([](const Slice&, int64_t position, int64_t) { return position; });
  plan.segment_starts = write.Rows([&](const Slice& slice, int64_t position, int64_t) {
    return position - (position - slice.segment_start) % segment_length;
  });
  plan.row_slices = write.Rows([&](const Slice& slice, int64_t, int64_t) { return write.IndexOf(slice); });
  plan.window_slots = write.Rows(
      [&](const Slice& slice, int64_t position, int64_t) { return write.Slot(slice.window_pages, position); });

  plan.kept_rows = write.KeptRows([](const Slice&, int64_t, int64_t row) { return row; });
  plan.kept_slots = write.KeptRows([&](const Slice& slice, int64_t position, int64_t) {
    return slice.open_chunk * chunk_size + position % chunk_size;
  });

  plan.chunk_ends = write.Chunks([](const Slice&, int64_t, int64_t last_row) { return last_row; });
  plan.chunk_kept = write.Chunks([&](const Slice& slice, int64_t chunk, int64_t) {
    return std::max<int64_t>(0, slice.position - chunk * chunk_size);
  });
  plan.chunk_pages = write.Chunks([](const Slice& slice, int64_t, int64_t) -> int64_t { return slice.open_chunk; });
  plan.memory_slots = write.VectorSlots(&Slice::memory_pages);
  plan.segment_slots = write.VectorSlots(&Slice::segment_pages);

  plan.logit_rows = write.LogitRows([](const Slice&, int64_t, int64_t row) { return row; });
  plan.are_all_logits_wanted = plan.logit_rows.size == plan.rows();
  plan.window = write.Tables(&Slice::window_pages);
  plan.memory = write.Tables(&Slice::memory_pages);
  plan.segment = write.Tables(&Slice::segment_pages);
  return plan;
}

}  // namespace longshort::models
