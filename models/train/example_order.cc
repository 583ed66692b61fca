#include "models/train/example_order.h"

#include <numeric>
#include <utility>

namespace longshort {

RandomDraws VariationOf(const Draw& draw, uint64_t seed) {
  constexpr uint64_t kVariation = uint64_t{1} << 63;  // no epoch's number is as high
  return {seed, kVariation + draw.number};
}

std::vector<Draw> ExampleOrder::Batch(int64_t step, int64_t batch) {
  std::vector<Draw> draws;
  for (int64_t number = step * batch; number < (step + 1) * batch; ++number) {
    if (number / examples_ != shuffled_epoch_) Shuffle(number / examples_);
    draws.push_back({.example = order_[number % examples_], .number = static_cast<uint64_t>(number)});
  }
  return draws;
}

void ExampleOrder::Shuffle(int64_t epoch) {
  order_.resize(examples_);
  std::iota(order_.begin(), order_.end(), int64_t{0});
  RandomDraws random(seed_, static_cast<uint64_t>(epoch));
  for (int64_t i = examples_ - 1; i > 0; --i) std::swap(order_[i], order_[random.Below(i + 1)]);
  shuffled_epoch_ = epoch;
}

}  // namespace longshort
