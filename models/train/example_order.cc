#include "models/train/example_order.h"

#include <numeric>
#include <utility>

namespace longshort::models {
namespace {

uint64_t Mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;

}  // namespace

RandomDraws::RandomDraws(uint64_t seed, uint64_t stream)
    : state_(Mixed(Mixed(seed + kGoldenRatio) + (stream + 1) * kGoldenRatio)) {}

uint64_t RandomDraws::Next() {
  state_ += kGoldenRatio;
  return Mixed(state_);
}

double RandomDraws::Uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1p-53;
}

int64_t RandomDraws::Below(int64_t count) {
  return static_cast<int64_t>(((Next() >> 32) * static_cast<uint64_t>(count)) >> 32);
}

RandomDraws VariationOf(const Draw& draw, uint64_t seed) {
  constexpr uint64_t kVariation = uint64_t{1} << 63;  // greater than any epoch's number
  return {seed, kVariation + draw.number};
}

uint64_t DropoutSeed(uint64_t number, uint64_t seed) {
  constexpr uint64_t kDropout = uint64_t{3} << 62;  // greater than any stream of VariationOf
  return RandomDraws(seed, kDropout + number).Next();
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

}  // namespace longshort::models
