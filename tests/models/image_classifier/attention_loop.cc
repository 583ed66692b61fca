#include "tests/models/image_classifier/attention_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort {

AttentionLoop::AttentionLoop(at::Tensor query) : query_(std::move(query)) {}

void AttentionLoop::See(const at::Tensor& key, const at::Tensor& value, double bias) {
  scores_.push_back(at::dot(query_, key).item<double>() + bias);
  values_.push_back(value);
}

at::Tensor AttentionLoop::Sum() const {
  const double highest = *std::max_element(scores_.begin(), scores_.end());
  double total = 0;
  at::Tensor sum = at::zeros_like(query_);
  for (size_t i = 0; i < scores_.size(); ++i) {
    const double weight = std::exp(scores_[i] - highest);
    total += weight;
    sum = sum + values_[i] * weight;
  }
  return sum / total;
}

}  // namespace longshort
