#include "models/ops/products/int8_products.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(void MultiplyInt8(const Int8Panel& panel, const HeadRows<const float>& rows, int64_t count,
                                    const HeadRows<float>& out);
                  void WidenInt8(const Int8Panel& panel, const HeadRows<float>& weights);
                  void WidenPairs(const BFloat16* pairs, int64_t inputs, const HeadRows<float>& weights);
                  void WidenToPairs(const Int8Panel& panel, BFloat16* pairs);
                  void RoundToBFloat16(const float* from, int64_t count, BFloat16* to);
                  void FinishProduct(const HeadRows<float>& rows, int64_t count, int64_t columns, const Summands& added,
                                     bool gelu);)

void MultiplyInt8(const Int8Panel& panel, const HeadRows<const float>& rows, int64_t count, const HeadRows<float>& out,
                  InstructionSet set) {
  LONGSHORT_CALL(set, MultiplyInt8, panel, rows, count, out)
}

void WidenInt8(const Int8Panel& panel, const HeadRows<float>& weights, InstructionSet set) {
  LONGSHORT_CALL(set, WidenInt8, panel, weights)
}

void WidenPairs(const BFloat16* pairs, int64_t inputs, const HeadRows<float>& weights, InstructionSet set) {
  LONGSHORT_CALL(set, WidenPairs, pairs, inputs, weights)
}

void WidenToPairs(const Int8Panel& panel, BFloat16* pairs, InstructionSet set) {
  LONGSHORT_CALL(set, WidenToPairs, panel, pairs)
}

void RoundToBFloat16(const float* from, int64_t count, BFloat16* to, InstructionSet set) {
  LONGSHORT_CALL(set, RoundToBFloat16, from, count, to)
}

void FinishProduct(const HeadRows<float>& rows, int64_t count, int64_t columns, const Summands& added, bool gelu,
                   InstructionSet set) {
  LONGSHORT_CALL(set, FinishProduct, rows, count, columns, added, gelu)
}

}  // namespace longshort::models::cpu
