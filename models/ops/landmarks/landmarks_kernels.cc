#include "models/ops/landmarks/landmarks_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(void MixLandmarks(const LandmarkHead& head, const LandmarkOutput& output);
                  int64_t LandmarkGradientScratchFloats(const LandmarkHead& head);
                  void DifferentiateLandmarks(const LandmarkHead& head, const LandmarkGradient& gradient,
                                              float* scratch);)

void MixLandmarks(const LandmarkHead& head, const LandmarkOutput& output,
                  InstructionSet set){LONGSHORT_CALL(set, MixLandmarks, head, output)}

int64_t LandmarkGradientScratchFloats(const LandmarkHead& head) {
  return baseline::LandmarkGradientScratchFloats(head);
}

void DifferentiateLandmarks(const LandmarkHead& head, const LandmarkGradient& gradient, float* scratch,
                            InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateLandmarks, head, gradient, scratch)
}

}  // namespace longshort::models::cpu
