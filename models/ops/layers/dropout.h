// Dropout, for training: sets random elements to 0, and divides the others by the probability that they stay.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Generator.h"
#include "ATen/core/Tensor.h"

namespace longshort::models {

// The probabilities with which elements become 0. At 0, nothing changes and nothing is drawn.
struct DropoutRates {
  double rows = 0;       // of embedded rows, and of the results of attention, GELU and the feed-forward part
  double attention = 0;  // of attention's probabilities
};

// The dropout of one forward pass. The seeds and the order of the calls determine the masks; the number of threads does
// not. Differentiable. Thread: one at a time.
class Dropout final {
 public:
  // item_seeds: one for each item of the batch, whose masks then do not depend on the other items. Empty: `seed`
  // determines the masks of the whole batch.
  Dropout(const DropoutRates& rates, uint64_t seed, const std::vector<uint64_t>& item_seeds = {});

  // rows: [items, ...] if there are item seeds.
  at::Tensor OfRows(const at::Tensor& rows);
  // A table that all items read. Its mask depends on `seed` only.
  at::Tensor OfTable(const at::Tensor& table);
  at::Tensor OfAttention(const at::Tensor& probabilities);

  bool drops_rows() const { return rates_.rows > 0; }
  bool drops_attention() const { return rates_.attention > 0; }

 private:
  const DropoutRates rates_;
  at::Generator generator_;
  std::vector<at::Generator> of_items_;
};

// `rows` after dropout; `rows` itself without one.
inline at::Tensor Dropped(Dropout* dropout, const at::Tensor& rows) {
  return dropout == nullptr ? rows : dropout->OfRows(rows);
}

}  // namespace longshort::models
