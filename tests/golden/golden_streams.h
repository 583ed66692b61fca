// A file of a golden case: streams with their tokens, the ends of segments, and the expected results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"

namespace longshort {

struct GoldenStream {
  // All that is fed, padding included.
  std::vector<int32_t> tokens;
  // Where each segment starts, ascending; the first is 0.
  std::vector<int64_t> segment_starts;
  // For each position the V log-probabilities of the token after it, or none where the file expects nothing.
  std::vector<std::vector<float>> expected;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  // Start of the segment that the position belongs to.
  int64_t SegmentStart(int64_t position) const;
  // End of that segment.
  int64_t SegmentEnd(int64_t position) const;
};

// Reads the streams (batch rows) of a file whose segments have these lengths, for a model of these hyperparameters.
//
// The file holds either segNN.tokens [batch, T] and segNN.logprobs [batch, T, V] for every segment, or, for all of
// them, tokens [batch, N], positions [n] and logprobs [batch, n, V]. A segment before the last whose length is no
// multiple of the chunk is followed by id 0 up to the next multiple of lcm(C, W), as the official code pads it; nothing
// is expected there. Errors: INVALID_ARGUMENT naming the tensor that is missing or has another type or shape; those of
// SafetensorsFile::Open.
absl::StatusOr<std::vector<GoldenStream>> ReadGoldenStreams(const std::string& path, absl::Span<const int64_t> segments,
                                                            const models::LanguageModelInfo& info);

}  // namespace longshort
