#include "models/ops/products/float_products.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(void MultiplyFloats(const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count,
                                      const HeadRows<float>& out, const HeadRows<const float>& added, bool gelu);
                  void NormalizeFloats(const RowNorm& norm, int64_t width, const HeadRows<const float>& rows,
                                       int64_t count, const HeadRows<float>& out);)

void MultiplyFloats(const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count,
                    const HeadRows<float>& out, const HeadRows<const float>& added, bool gelu, InstructionSet set) {
  LONGSHORT_CALL(set, MultiplyFloats, panel, rows, count, out, added, gelu)
}

void NormalizeFloats(const RowNorm& norm, int64_t width, const HeadRows<const float>& rows, int64_t count,
                     const HeadRows<float>& out, InstructionSet set) {
  LONGSHORT_CALL(set, NormalizeFloats, norm, width, rows, count, out)
}

}  // namespace longshort::models::cpu
