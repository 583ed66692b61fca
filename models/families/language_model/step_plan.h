// The plan of a step, computed from its slices before any arithmetic: index arrays that all layers share.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort::models {

// The arrays are contiguous, so that one copy transfers them to a device.
//
// The rows of a step are the tokens of its slices, slice by slice. A slot is a row's place on a page: page * (rows of a
// page) + row, where window and segment pages have P rows, open chunk pages C.
struct StepPlan {
  // A part of the numbers.
  struct Array {
    int64_t first = 0;
    int64_t size = 0;
  };
  // The PageRanges of all slices: slice s has ids[first_ids[s]] to ids[first_ids[s + 1] - 1], and the first of these is
  // page first_pages[s] of the grid.
  struct PageTables {
    Array first_pages;  // [slices]
    Array first_ids;    // [slices + 1]
    Array ids;          // including kZeroPage
  };

  std::vector<int64_t> numbers;

  // [rows], for each row:
  Array tokens;
  Array positions;       // in its stream
  Array segment_starts;  // of its segment
  Array row_slices;      // index of its slice
  Array window_slots;    // of its key and value

  // [kept], for each row whose chunk is not full after the step, ascending:
  Array kept_rows;
  Array kept_slots;  // its slot on open chunk pages

  // [full], for each chunk that becomes full, in row order:
  Array chunk_ends;   // the row of its last token
  Array chunk_kept;   // number of its first rows that earlier steps put on an open chunk page
  Array chunk_pages;  // that page
  // [full * R], for each vector of these chunks:
  Array memory_slots;   // its slot as memory ("mix, then project")
  Array segment_slots;  // its slot in the current segment ("project, then mix")

  // [logit rows]: the rows whose logits are requested, ascending.
  Array logit_rows;
  bool are_all_logits_wanted = false;  // logit_rows are all rows

  PageTables window, memory, segment;

  int64_t rows() const { return tokens.size; }
  int64_t full_chunks() const { return chunk_ends.size; }
  absl::Span<const int64_t> Of(const Array& array) const {
    return absl::MakeConstSpan(numbers).subspan(array.first, array.size);
  }
};

// Checks that slices satisfy the rules of models/model.h, for a cache of `pages` pages.
// Errors: INVALID_ARGUMENT with the slice, the field, its value and the limit.
absl::Status CheckSlices(absl::Span<const Slice> slices, const LanguageModelInfo& info, const CachePages& pages);

// REQUIRES: CheckSlices is OK.
StepPlan PlanStep(absl::Span<const Slice> slices, const LanguageModelInfo& info);

}  // namespace longshort::models
