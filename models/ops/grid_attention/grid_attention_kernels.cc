#include "models/ops/grid_attention/grid_attention_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(int64_t AttendGridScratchFloats(const GridHead& head);
                  void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch);)

int64_t AttendGridScratchFloats(const GridHead& head) { return baseline::AttendGridScratchFloats(head); }

void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch,
                InstructionSet set) {
  LONGSHORT_CALL(set, AttendGrid, head, band, attended, scratch)
}

}  // namespace longshort::models::cpu
