#include "models/kernels/grid_attention.h"

#include "models/kernels/call_kernel.h"

namespace longshort::models::cpu {

#define LONGSHORT_DECLARE_GRID_ATTENTION(set)                                                           \
  namespace set {                                                                                       \
  int64_t AttendGridScratchFloats(const GridHead& head);                                                \
  void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch); \
  }
LONGSHORT_DECLARE_GRID_ATTENTION(avx512)
LONGSHORT_DECLARE_GRID_ATTENTION(avx2)
LONGSHORT_DECLARE_GRID_ATTENTION(baseline)
#undef LONGSHORT_DECLARE_GRID_ATTENTION

int64_t AttendGridScratchFloats(const GridHead& head) { return baseline::AttendGridScratchFloats(head); }

void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch,
                InstructionSet set) {
  LONGSHORT_CALL(set, AttendGrid, head, band, attended, scratch)
}

}  // namespace longshort::models::cpu
