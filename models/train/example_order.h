// Which training example is drawn when: one epoch after the other, each in an order of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "models/train/random_draws.h"

namespace longshort {

// One example drawn for training.
struct Draw {
  int64_t example = 0;  // which
  uint64_t number = 0;  // how many were drawn before; decides, with the seed, how it is varied
};

// The random numbers that vary a drawn example; others than those of the order.
RandomDraws VariationOf(const Draw& draw, uint64_t seed);

class ExampleOrder final {
 public:
  // REQUIRES: examples > 0.
  ExampleOrder(int64_t examples, uint64_t seed) : examples_(examples), seed_(seed) {}

  // The draws of step `step`: every `examples` draws from the first hold each example once.
  std::vector<Draw> Batch(int64_t step, int64_t batch);

 private:
  void Shuffle(int64_t epoch);

  int64_t examples_;
  uint64_t seed_;
  int64_t shuffled_epoch_ = -1;
  std::vector<int64_t> order_;  // of that epoch
};

}  // namespace longshort
