#include "tests/golden/slicing.h"

#include <algorithm>

namespace longshort {
namespace {

int64_t Uniform(int64_t low, int64_t high, std::mt19937_64& random) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// 0 in one of eight draws; the others are shared evenly by single tokens, a few, and long slices.
int64_t RandomLength(int64_t long_slice, std::mt19937_64& random) {
  if (Uniform(0, 7, random) == 0) return 0;
  switch (Uniform(0, 2, random)) {
    case 0:
      return 1;
    case 1:
      return Uniform(2, 8, random);
    default:
      return Uniform(1, 2 * long_slice, random);
  }
}

}  // namespace

SliceLengths WholeSegments(const GoldenStream& stream) {
  SliceLengths lengths;
  for (const int64_t start : stream.segment_starts) lengths.push_back(stream.SegmentEnd(start) - start);
  return lengths;
}

SliceLengths TokenByToken(const GoldenStream& stream) { return SliceLengths(stream.length(), 1); }

SliceLengths RandomCuts(const GoldenStream& stream, SegmentEnds segment_ends, int64_t long_slice,
                        std::mt19937_64& random) {
  SliceLengths lengths;
  for (int64_t position = 0; position < stream.length(); position += lengths.back()) {
    const int64_t end = segment_ends == SegmentEnds::kKept ? stream.SegmentEnd(position) : stream.length();
    lengths.push_back(std::min(RandomLength(long_slice, random), end - position));
  }
  return lengths;
}

}  // namespace longshort
