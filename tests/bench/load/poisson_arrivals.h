// When the requests of an open loop are due: a Poisson process, which is what many clients that do not know of each
// other make. The times are drawn before anything is sent and do not depend on the server.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace longshort::load {

// Equal rates and seeds give equal times.
class PoissonArrivals final {
 public:
  // REQUIRES: per_second > 0.
  PoissonArrivals(double per_second, uint64_t seed) : per_second_(per_second), random_(seed) {}

  // The next arrival, counted from the start; rising.
  absl::Duration Next();

 private:
  const double per_second_;
  std::mt19937_64 random_;
  absl::Duration last_ = absl::ZeroDuration();
};

}  // namespace longshort::load
