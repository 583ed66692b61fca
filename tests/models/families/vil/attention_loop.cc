#include "tests/models/families/vil/attention_loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort::models {

namespace {

std::vector<double> Row(const at::Tensor& rows, int64_t index) {
  const int64_t width = rows.size(-1);
  const double* const begin = rows.const_data_ptr<double>() + index * width;
  return {begin, begin + width};
}

}  // namespace

AttentionLoop::AttentionLoop(const at::Tensor& query) : query_(Row(query, 0)) {}

void AttentionLoop::See(const at::Tensor& keys, const at::Tensor& values, int64_t index, double bias) {
  const std::vector<double> key = Row(keys, index);
  scores_.push_back(std::inner_product(query_.begin(), query_.end(), key.begin(), bias));
  values_.push_back(Row(values, index));
}

at::Tensor AttentionLoop::Sum() const {
  const double highest = *std::max_element(scores_.begin(), scores_.end());
  double total = 0;
  std::vector<double> sum(query_.size());
  for (size_t i = 0; i < scores_.size(); ++i) {
    const double weight = std::exp(scores_[i] - highest);
    total += weight;
    for (size_t channel = 0; channel < sum.size(); ++channel) sum[channel] += weight * values_[i][channel];
  }
  return at::tensor(sum, at::kDouble) / total;
}

}  // namespace longshort::models
