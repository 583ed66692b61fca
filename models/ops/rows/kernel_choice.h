// Selects the instance of a kernel and its number of blocks, because element types, widths and strides are known only
// at run time.
#pragma once

#include <cstdint>
#include <type_traits>

#include "models/device/device.h"
#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// Whether four elements can be read at once at the start of every row.
inline bool IsAligned(const Rows& rows) {
  return rows.data == nullptr || (rows.stride % 4 == 0 && reinterpret_cast<uintptr_t>(rows.data) % 16 == 0);
}

inline bool IsAligned(const NormWeights& norm) {
  return (reinterpret_cast<uintptr_t>(norm.gain) | reinterpret_cast<uintptr_t>(norm.bias)) % 16 == 0;
}

inline unsigned BlocksFor(int64_t items, int64_t items_of_block) {
  return static_cast<unsigned>((items + items_of_block - 1) / items_of_block);
}

// Returns make(width), where decltype(width)::value is the padded head width.
template <typename Make>
KernelCall ForWidth(int64_t head_width, const Make& make) {
  switch (PaddedHeadWidth(head_width)) {
    case 32:
      return make(std::integral_constant<int, 32>());
    case 64:
      return make(std::integral_constant<int, 64>());
    default:
      return make(std::integral_constant<int, 128>());
  }
}

// Returns make(element, width), where `element` has the element type.
template <typename Make>
KernelCall ForTypeAndWidth(ElementType type, int64_t head_width, const Make& make) {
  return ForWidth(head_width, [&](auto width) {
    return type == ElementType::kFloat ? make(float(), width) : make(BFloat16(), width);
  });
}

}  // namespace longshort::models::cuda
