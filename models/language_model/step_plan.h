// What a step has to do, worked out from its slices before any arithmetic: which chunks become full, and in which runs
// the new rows attend.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort {

// Queries of one slice between two multiples of kTokensPerRun and in one segment. Runs of a slice come one after the
// other: the rows of a run are written before its queries attend, and after the queries of the run before.
struct QueryRun {
  int64_t slice = 0;
  int64_t row = 0;  // of the step's rows
  int64_t count = 0;
  int64_t position = 0;
  int64_t segment_start = 0;
  // Full chunks whose last token is in this run, numbered as in StepPlan::finished.
  int64_t first_finished = 0;
  int64_t finished_count = 0;
};

struct FinishedChunk {
  int64_t slice = 0;
  int64_t chunk = 0;     // on the grid: tokens chunk*C .. chunk*C + C-1
  int64_t last_row = 0;  // of the step's rows: its last token
};

struct StepPlan {
  int64_t rows = 0;
  int64_t logit_rows = 0;
  std::vector<int64_t> first_rows;            // of each slice
  std::vector<FinishedChunk> finished;        // slice by slice, ascending
  std::vector<std::vector<QueryRun>> rounds;  // round n holds every slice's n-th run
};

// Checks that a slice is as models/model.h says, for a cache of `pages` pages.
// Errors: INVALID_ARGUMENT naming the slice, the field, its value and the limit.
absl::Status CheckSlices(absl::Span<const Slice> slices, const LanguageModelInfo& info, const CachePages& pages);

// REQUIRES: CheckSlices is OK.
StepPlan PlanStep(absl::Span<const Slice> slices, const LanguageModelInfo& info);

}  // namespace longshort
