#include "models/kernels/segment_attention.h"

#include "models/kernels/call_kernel.h"

namespace longshort::models::cpu {

#define LONGSHORT_DECLARE_SEGMENT_ATTENTION(set)                                                        \
  namespace set {                                                                                       \
  int64_t AttendSegmentsScratchFloats(const SegmentHead& head);                                         \
  int64_t SegmentGradientScratchFloats(const SegmentHead& head);                                        \
  void AttendSegments(const SegmentHead& head, const SegmentOutput& output, float* scratch);            \
  void DifferentiateSegments(const SegmentHead& head, const SegmentGradient& gradient, float* scratch); \
  }
LONGSHORT_DECLARE_SEGMENT_ATTENTION(avx512)
LONGSHORT_DECLARE_SEGMENT_ATTENTION(avx2)
LONGSHORT_DECLARE_SEGMENT_ATTENTION(baseline)
#undef LONGSHORT_DECLARE_SEGMENT_ATTENTION

int64_t AttendSegmentsScratchFloats(const SegmentHead& head) { return baseline::AttendSegmentsScratchFloats(head); }

int64_t SegmentGradientScratchFloats(const SegmentHead& head) { return baseline::SegmentGradientScratchFloats(head); }

void AttendSegments(const SegmentHead& head, const SegmentOutput& output, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, AttendSegments, head, output, scratch)
}

void DifferentiateSegments(const SegmentHead& head, const SegmentGradient& gradient, float* scratch,
                           InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateSegments, head, gradient, scratch)
}

}  // namespace longshort::models::cpu
