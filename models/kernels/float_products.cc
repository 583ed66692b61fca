#include "models/kernels/float_products.h"

namespace longshort::models::cpu {

#define LONGSHORT_DECLARE_FLOAT_PRODUCTS(set)                                                     \
  namespace set {                                                                                 \
  void MultiplyFloats(const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count,  \
                      const HeadRows<float>& out, const HeadRows<const float>& added, bool gelu); \
  }
LONGSHORT_DECLARE_FLOAT_PRODUCTS(avx512)
LONGSHORT_DECLARE_FLOAT_PRODUCTS(avx2)
LONGSHORT_DECLARE_FLOAT_PRODUCTS(baseline)
#undef LONGSHORT_DECLARE_FLOAT_PRODUCTS

void MultiplyFloats(const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count,
                    const HeadRows<float>& out, const HeadRows<const float>& added, bool gelu, InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return avx512::MultiplyFloats(panel, rows, count, out, added, gelu);
    case InstructionSet::kAvx2:
      return avx2::MultiplyFloats(panel, rows, count, out, added, gelu);
    case InstructionSet::kBaseline:
      return baseline::MultiplyFloats(panel, rows, count, out, added, gelu);
  }
}

}  // namespace longshort::models::cpu
