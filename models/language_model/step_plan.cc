#include "models/language_model/step_plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

absl::Status Broken(size_t slice, const char* field, int64_t value, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrFormat("slice %d: %s is %d; %s", slice, field, value, rule));
}

// Every page from row `first` to row `end - 1` must be there; rows from `first_written` on are new.
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

// Cuts a slice into runs and appends them to the rounds.
void PlanSlice(int64_t index, const Slice& slice, const LanguageModelInfo& info, StepPlan& plan) {
  const int64_t end = slice.position + static_cast<int64_t>(slice.tokens.size());
  int64_t segment_start = slice.segment_start;
  size_t round = 0;
  for (int64_t position = slice.position; position < end; ++round) {
    if (position - segment_start >= info.segment_length) segment_start += info.segment_length;
    const int64_t boundary = (position / kTokensPerRun + 1) * kTokensPerRun;
    const int64_t run_end = std::min({end, boundary, segment_start + info.segment_length});
    QueryRun run{.slice = index,
                 .row = plan.rows + position - slice.position,
                 .count = run_end - position,
                 .position = position,
                 .segment_start = segment_start,
                 .first_finished = static_cast<int64_t>(plan.finished.size()),
                 .finished_count = run_end / info.chunk_size - position / info.chunk_size};
    for (int64_t i = 0; i < run.finished_count; ++i) {
      const int64_t chunk = position / info.chunk_size + i;
      plan.finished.push_back(
          {.slice = index, .chunk = chunk, .last_row = plan.rows + (chunk + 1) * info.chunk_size - 1 - slice.position});
    }
    if (plan.rounds.size() == round) plan.rounds.emplace_back();
    plan.rounds[round].push_back(run);
    position = run_end;
  }
}

}  // namespace

absl::Status CheckSlices(absl::Span<const Slice> slices, const LanguageModelInfo& info, const CachePages& pages) {
  for (size_t i = 0; i < slices.size(); ++i) LS_RETURN_IF_ERROR(CheckSlice(i, slices[i], info, pages));
  return absl::OkStatus();
}

StepPlan PlanStep(absl::Span<const Slice> slices, const LanguageModelInfo& info) {
  StepPlan plan;
  for (size_t i = 0; i < slices.size(); ++i) {
    plan.first_rows.push_back(plan.rows);
    PlanSlice(static_cast<int64_t>(i), slices[i], info, plan);
    plan.rows += static_cast<int64_t>(slices[i].tokens.size());
    plan.logit_rows += slices[i].logit_rows;
  }
  return plan;
}

}  // namespace longshort
