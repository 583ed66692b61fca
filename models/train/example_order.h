// Which training example is drawn when, and how it is varied.
#pragma once

#include <cstdint>
#include <vector>

namespace longshort::models {

// Random numbers that depend on a seed and a stream's number only, the same on every machine: the splitmix64 sequence
// that (seed, stream) starts; streams are independent for all purposes here.
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
  int64_t example = 0;  // which
  uint64_t number = 0;  // how many were drawn before; decides, with the seed, how it is varied
};

// The random numbers that vary a drawn example; others than those of the order.
RandomDraws VariationOf(const Draw& draw, uint64_t seed);

// One epoch after the other, each in an order of its own.
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

}  // namespace longshort::models
