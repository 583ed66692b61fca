#include "tests/determinism/library_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "models/ops/layers/linear.h"

namespace longshort {
namespace {

constexpr int64_t kManyRows = 48;

at::Tensor RandomMatrix(int64_t rows, int64_t columns, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({rows, columns}, generator);
}

// Leaves the number of threads as it was.
class Threads final {
 public:
  explicit Threads(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  const int before_;
};

at::Tensor ProductOn(int threads, const models::Linear& linear, const at::Tensor& rows) {
  const Threads used(threads);
  return linear(rows);
}

struct Product {
  Product(int64_t inputs, int64_t outputs)
      : linear{.weight = RandomMatrix(outputs, inputs, 1) / std::sqrt(static_cast<double>(inputs)),
               .bias = RandomMatrix(1, outputs, 2)[0]},
        rows(RandomMatrix(kManyRows, inputs, 3)),
        expected(ProductOn(1, linear, rows)) {}

  const models::Linear linear;
  const at::Tensor rows;      // [kManyRows, inputs]
  const at::Tensor expected;  // [kManyRows, outputs], of all on one thread
};

const std::vector<Product>& Products() {
  static const std::vector<Product> products = {{16, 16}, {24, 24},    {24, 40},   {40, 24},
                                                {24, 31}, {256, 2048}, {2048, 256}};
  return products;
}

// How many rows of the two are the same, bit by bit.
int64_t SameRows(const at::Tensor& a, const at::Tensor& b) {
  int64_t same = 0;
  for (int64_t row = 0; row < a.size(0); ++row) {
    const int64_t begin = row * a.size(1);
    same += std::memcmp(a.const_data_ptr<float>() + begin, b.const_data_ptr<float>() + begin,
                        a.size(1) * sizeof(float)) == 0;
  }
  return same;
}

}  // namespace

SameBits CompareRows(int64_t rows, int threads) {
  int64_t identical = 0, compared = 0;
  double largest = 0;
  for (const Product& product : Products()) {
    for (int64_t first = 0; first + rows <= kManyRows; first += rows) {
      const at::Tensor part = ProductOn(threads, product.linear, product.rows.narrow(0, first, rows));
      const at::Tensor expected = product.expected.narrow(0, first, rows);
      identical += SameRows(part, expected);
      compared += rows;
      largest = std::max(largest, (part - expected).abs().max().item<double>());
    }
  }
  return {.identical = static_cast<double>(identical) / static_cast<double>(compared), .largest_difference = largest};
}

bool EnoughRowsKeepTheirBits(int threads) {
  for (int64_t rows = kEnoughRows; rows <= kManyRows; ++rows) {
    if (CompareRows(rows, threads).identical < 1) return false;
  }
  return true;
}

SameBits CompareImages(int64_t images) {
  constexpr int64_t kPatch = 2, kChannels = 8, kSize = 16;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(4);
  const at::Tensor pixels = at::randn({images, 3, kSize, kSize}, generator);
  const at::Tensor weight = at::randn({kChannels, 3, kPatch, kPatch}, generator) / std::sqrt(3.0 * kPatch * kPatch);
  const auto patches_of = [&](const at::Tensor& some) {
    return at::conv2d(some, weight, {}, kPatch).flatten(1).contiguous();
  };
  const Threads used(1);
  const at::Tensor together = patches_of(pixels);
  std::vector<at::Tensor> each;
  for (int64_t image = 0; image < images; ++image) each.push_back(patches_of(pixels.narrow(0, image, 1)));
  const at::Tensor alone = at::cat(each);
  return {.identical = static_cast<double>(SameRows(together, alone)) / static_cast<double>(images),
          .largest_difference = (together - alone).abs().max().item<double>()};
}

}  // namespace longshort
