#include "models/ops/layers/dropout.h"

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort::models {
namespace {

at::Generator Seeded(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

// Draws 0 with the probability `rate`, or else 1 / (1 - rate).
at::Tensor MaskFor(const at::Tensor& values, double rate, at::Generator& generator) {
  return at::empty(values.sizes(), values.options()).bernoulli_(1 - rate, generator).div_(1 - rate);
}

}  // namespace

Dropout::Dropout(const DropoutRates& rates, uint64_t seed, const std::vector<uint64_t>& item_seeds)
    : rates_(rates), generator_(Seeded(seed)) {
  for (const uint64_t item : item_seeds) of_items_.push_back(Seeded(item));
}

at::Tensor Dropout::OfRows(const at::Tensor& rows) {
  if (of_items_.empty() || rates_.rows == 0) return OfTable(rows);
  std::vector<at::Tensor> masks;
  masks.reserve(of_items_.size());
  for (size_t item = 0; item < of_items_.size(); ++item) {
    masks.push_back(MaskFor(rows[static_cast<int64_t>(item)], rates_.rows, of_items_[item]));
  }
  return rows * at::stack(masks);
}

at::Tensor Dropout::OfTable(const at::Tensor& table) {
  return rates_.rows == 0 ? table : table * MaskFor(table, rates_.rows, generator_);
}

at::Tensor Dropout::OfAttention(const at::Tensor& probabilities) {
  return rates_.attention == 0 ? probabilities : probabilities * MaskFor(probabilities, rates_.attention, generator_);
}

}  // namespace longshort::models
