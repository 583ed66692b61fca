#include "tests/bench/load/poisson_arrivals.h"

#include <cmath>

namespace longshort::load {

absl::Duration PoissonArrivals::Next() {
  // 53 bits: u in [0, 1), so that the logarithm's argument is in (0, 1].
  const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
  last_ += absl::Seconds(-std::log1p(-u) / per_second_);
  return last_;
}

}  // namespace longshort::load
