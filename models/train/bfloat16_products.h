// Matrix products and convolutions in bfloat16 while it lives (LibTorch's autocast); weights, normalisations and
// softmax stay float32. Concerns the calling thread only.
#pragma once

#include "c10/core/ScalarType.h"

namespace longshort {

class Bfloat16Products final {
 public:
  // Does nothing unless `enabled`.
  explicit Bfloat16Products(bool enabled);
  ~Bfloat16Products();
  Bfloat16Products(const Bfloat16Products&) = delete;
  Bfloat16Products& operator=(const Bfloat16Products&) = delete;

 private:
  bool enabled_;
  at::ScalarType previous_type_;
};

}  // namespace longshort
