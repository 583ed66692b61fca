// Ways to cut streams into the slices of successive steps.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/golden/golden_streams.h"

namespace longshort {

// Lengths of one stream's slices, step after step; 0: the stream sits that step out.
using SliceLengths = std::vector<int64_t>;

// One slice per segment.
SliceLengths WholeSegments(const GoldenStream& stream);

// One slice per token.
SliceLengths TokenByToken(const GoldenStream& stream);

// Whether a random slice may reach over a segment's end.
enum class SegmentEnds { kKept, kCrossed };

// Slices of random lengths: single tokens, a few, long ones up to twice `long_slice`, and steps sat out.
SliceLengths RandomCuts(const GoldenStream& stream, SegmentEnds segment_ends, int64_t long_slice,
                        std::mt19937_64& random);

}  // namespace longshort
