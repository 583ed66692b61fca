// The order in which training examples are drawn, and the random numbers that vary them.
#pragma once

#include <cstdint>
#include <vector>

namespace longshort::models {

// Random numbers: the splitmix64 sequence that (seed, stream) selects. It is the same on every machine. Different
// streams are independent enough for training.
class RandomDraws final {
 public:
  RandomDraws(uint64_t seed, uint64_t stream);

  uint64_t Next();
  // In [low, high), with 53 random bits.
  double Uniform(double low, double high);
  // In [0, count). REQUIRES: 0 < count < 2^31.
  int64_t Below(int64_t count);

 private:
  uint64_t state_;
};

// One example drawn for training.
struct Draw {
  int64_t example = 0;  // its index
  uint64_t number = 0;  // number of earlier draws; with the seed, it selects the variation
};

// The random numbers that vary a drawn example. They are independent of the order.
RandomDraws VariationOf(const Draw& draw, uint64_t seed);

// The seed of the dropout of a draw, or of anything else that `number` counts.
uint64_t DropoutSeed(uint64_t number, uint64_t seed);

// Draws one epoch after another, each in its own random order.
class ExampleOrder final {
 public:
  // REQUIRES: examples > 0.
  ExampleOrder(int64_t examples, uint64_t seed) : examples_(examples), seed_(seed) {}

  // The draws of step `step`. Each epoch of `examples` draws contains each example once.
  std::vector<Draw> Batch(int64_t step, int64_t batch);

 private:
  void Shuffle(int64_t epoch);

  int64_t examples_;
  uint64_t seed_;
  int64_t shuffled_epoch_ = -1;
  std::vector<int64_t> order_;  // of epoch shuffled_epoch_
};

}  // namespace longshort::models
