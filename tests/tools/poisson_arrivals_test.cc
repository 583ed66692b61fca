#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tools/load/request_source.h"

namespace longshort::load::poisson_arrivals_test {

TEST(PoissonArrivals, GapsHaveTheMeanAndTheSpreadOfAPoissonProcess) {
  constexpr int kArrivals = 100'000;
  PoissonArrivals arrivals(50, /*seed=*/3);
  absl::Duration last = absl::ZeroDuration();
  double squares = 0;
  int beyond_mean = 0;
  for (int i = 0; i < kArrivals; ++i) {
    const absl::Duration next = arrivals.Next();
    ASSERT_GE(next, last);
    const double gap = absl::ToDoubleSeconds(next - last);
    squares += gap * gap;
    beyond_mean += gap > 0.02 ? 1 : 0;
    last = next;
  }
  // An exponential gap of mean m: E[gap^2] = 2 m^2, P(gap > m) = 1/e. Within five standard errors.
  EXPECT_NEAR(absl::ToDoubleSeconds(last) / kArrivals, 0.02, 5 * 0.02 / std::sqrt(kArrivals));
  EXPECT_NEAR(squares / kArrivals, 2 * 0.02 * 0.02, 5 * std::sqrt(20.0) * 0.02 * 0.02 / std::sqrt(kArrivals));
  EXPECT_NEAR(static_cast<double>(beyond_mean) / kArrivals, std::exp(-1), 5 * 0.5 / std::sqrt(kArrivals));
}

TEST(PoissonArrivals, TheSeedDecides) {
  PoissonArrivals one(5, 1), same(5, 1), other(5, 2);
  const absl::Duration first = one.Next();
  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other.Next());
}

}  // namespace longshort::load::poisson_arrivals_test
