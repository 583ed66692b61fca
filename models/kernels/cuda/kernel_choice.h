// Which instance of a kernel is launched: element types and head widths are known at run time only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "models/gpu/kernel_call.h"
#include "models/kernels/cuda/device.h"
#include "models/kernels/cuda/pages.h"

namespace longshort::cuda {

// `make(width)`, where decltype(width)::value is the padded head width.
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

// `make(element, width)`, where `element` is a number of the type.
template <typename Make>
KernelCall ForTypeAndWidth(ElementType type, int64_t head_width, const Make& make) {
  return ForWidth(head_width, [&](auto width) {
    return type == ElementType::kFloat ? make(float(), width) : make(BFloat16(), width);
  });
}

}  // namespace longshort::cuda
