// Attention as its definition says it, one query and one key at a time in double precision: what the tests of the image
// classifiers compare with.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"

namespace longshort {

// The softmax of one query over what it sees.
class AttentionLoop final {
 public:
  // `query` [head_dim], scaled.
  explicit AttentionLoop(at::Tensor query);

  // One more key and value, both [head_dim], double.
  void See(const at::Tensor& key, const at::Tensor& value, double bias = 0);

  // The weighted sum: [head_dim].
  at::Tensor Sum() const;

 private:
  at::Tensor query_;
  std::vector<double> scores_;
  std::vector<at::Tensor> values_;
};

}  // namespace longshort
