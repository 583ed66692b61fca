// What a step has to do, worked out from its slices before any arithmetic: index arrays, built once for all layers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort::models {

// The arrays lie one after the other in one piece of memory, so that one copy brings them to a device.
//
// The rows of a step are the tokens of its slices, slice by slice. A slot is a row's place on a page: page * (rows of a
// page) + row, where window and segment pages have P rows, open chunk pages C.
struct StepPlan {
  // A part of the numbers.
  struct Array {
    int64_t first = 0;
    int64_t size = 0;
  };
  // What PageRange says, of all slices: those of slice s are ids[first_ids[s]] up to ids[first_ids[s + 1] - 1], and the
  // first of them is page first_pages[s] of the grid.
  struct PageTables {
    Array first_pages;  // [slices]
    Array first_ids;    // [slices + 1]
    Array ids;          // kZeroPage among them
  };

  std::vector<int64_t> numbers;

  // [rows], of each row:
  Array tokens;
  Array positions;       // in its stream
  Array segment_starts;  // of the segment that it belongs to
  Array row_slices;      // which slice it is of
  Array window_slots;    // where its key and value go

  // [kept], of each row whose chunk is not full after the step, ascending:
  Array kept_rows;
  Array kept_slots;  // where it is kept, on open chunk pages

  // [full], of each chunk that becomes full, in the order of rows:
  Array chunk_ends;   // the row of its last token
  Array chunk_kept;   // how many of its first rows came in earlier steps, and lie on an open chunk page
  Array chunk_pages;  // which
  // [full * R], of each vector of these chunks:
  Array memory_slots;   // where it goes as memory ("mix, then project")
  Array segment_slots;  // and as the current segment sees it ("project, then mix")

  // [logit rows]: the rows of which logits are wanted, ascending.
  Array logit_rows;
  bool are_all_logits_wanted = false;  // logit_rows are all rows

  PageTables window, memory, segment;

  int64_t rows() const { return tokens.size; }
  int64_t full_chunks() const { return chunk_ends.size; }
  absl::Span<const int64_t> Of(const Array& array) const {
    return absl::MakeConstSpan(numbers).subspan(array.first, array.size);
  }
};

// Checks that a slice is as models/model.h says, for a cache of `pages` pages.
// Errors: INVALID_ARGUMENT naming the slice, the field, its value and the limit.
absl::Status CheckSlices(absl::Span<const Slice> slices, const LanguageModelInfo& info, const CachePages& pages);

// REQUIRES: CheckSlices is OK.
StepPlan PlanStep(absl::Span<const Slice> slices, const LanguageModelInfo& info);

}  // namespace longshort::models
