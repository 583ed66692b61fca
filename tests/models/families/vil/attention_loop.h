// The definition of attention, one query and one key at a time in double precision. The tests of the image classifiers
// compare with it.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// The softmax of one query over what it sees. Tensors are double and lie in memory without gaps.
class AttentionLoop final {
 public:
  // `query` [head_dim], scaled.
  explicit AttentionLoop(const at::Tensor& query);

  // One more key and value: row `index` of both [n, head_dim].
  void See(const at::Tensor& keys, const at::Tensor& values, int64_t index, double bias = 0);

  // The weighted sum: [head_dim].
  at::Tensor Sum() const;

 private:
  std::vector<double> query_;
  std::vector<double> scores_;
  std::vector<std::vector<double>> values_;
};

}  // namespace longshort::models
