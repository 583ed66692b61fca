// Runs golden streams through a language model and compares the results.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "tests/golden/golden_streams.h"
#include "tests/golden/slicing.h"

namespace longshort {

// A stream and how it is cut. The same stream may be run several times at once, cut in different ways.
struct CutStream {
  const GoldenStream* stream = nullptr;
  SliceLengths lengths;
};

struct Comparison {
  // Largest absolute difference of a log-probability; NaN if the model returned one.
  double largest_difference = 0;
  // Rows of V log-probabilities compared.
  int64_t rows = 0;
  // Steps that ran as graphs, on a GPU.
  int64_t replayed_steps = 0;
};

// The cache that RunStreams needs for them.
models::CachePages PagesForStreams(const models::LanguageModel& model, absl::Span<const CutStream> streams);

// Feeds all streams side by side, each from its first token: step n is one batch of everybody's n-th slice.
//
// REQUIRES: the model's cache has PagesForStreams pages. They are handed out in an order drawn from `seed`, so that no
// two neighbours belong together, and may hold what earlier runs left there. Errors: the model's.
absl::StatusOr<Comparison> RunStreams(models::LanguageModel& model, absl::Span<const CutStream> streams, uint64_t seed);

}  // namespace longshort
