#include "models/kernels/landmarks.h"

#include "models/kernels/call_kernel.h"

namespace longshort::models::cpu {

#define LONGSHORT_DECLARE_LANDMARKS(set)                                                                   \
  namespace set {                                                                                          \
  void MixLandmarks(const LandmarkHead& head, const LandmarkOutput& output);                               \
  int64_t LandmarkGradientScratchFloats(const LandmarkHead& head);                                         \
  void DifferentiateLandmarks(const LandmarkHead& head, const LandmarkGradient& gradient, float* scratch); \
  }
LONGSHORT_DECLARE_LANDMARKS(avx512)
LONGSHORT_DECLARE_LANDMARKS(avx2)
LONGSHORT_DECLARE_LANDMARKS(baseline)
#undef LONGSHORT_DECLARE_LANDMARKS

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
