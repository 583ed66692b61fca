#include "models/ops/segment_attention/segment_attention_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(int64_t AttendSegmentsScratchFloats(const SegmentHead& head);
                  int64_t SegmentGradientScratchFloats(const SegmentHead& head);
                  void AttendSegments(const SegmentHead& head, const SegmentOutput& output, float* scratch);
                  void DifferentiateSegments(const SegmentHead& head, const SegmentGradient& gradient, float* scratch);)

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
