#include <cmath>

#include "core/sampling/sampler.h"
#include "gtest/gtest.h"

namespace longshort::core::philox_test {

// The vectors for philox4x32-10 that its authors publish with Random123 (kat_vectors).
TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformAt, IsTheFirst53BitsOfTheWords) {
  // From the first vector: words 1 and 0 are 0xe169c58d6627e8d5.
  EXPECT_EQ(UniformAt(0, 0, 0), static_cast<double>(0xe169c58d6627e8d5 >> 11) / std::pow(2.0, 53));
}

TEST(UniformAt, DiffersBySeedPositionAndCompletion) {
  const double draw = UniformAt(1, 2, 3);
  EXPECT_NE(draw, UniformAt(2, 2, 3));
  EXPECT_NE(draw, UniformAt(1 + (uint64_t{1} << 32), 2, 3));
  EXPECT_NE(draw, UniformAt(1, 3, 3));
  EXPECT_NE(draw, UniformAt(1, 2 + (uint64_t{1} << 32), 3));
  EXPECT_NE(draw, UniformAt(1, 2, 4));
}

// The mean of n uniform draws has the deviation 1/sqrt(12 n) = 0.0009 here; that of their squares, 2/sqrt(45 n) =
// 0.0009.
TEST(UniformAt, HasTheMomentsOfAUniformDraw) {
  const int draws = 100000;
  double sum = 0;
  double sum_of_squares = 0;
  for (int position = 0; position < draws; ++position) {
    const double draw = UniformAt(42, position, 0);
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    sum += draw;
    sum_of_squares += draw * draw;
  }
  EXPECT_NEAR(sum / draws, 1.0 / 2, 0.004);
  EXPECT_NEAR(sum_of_squares / draws, 1.0 / 3, 0.004);
}

}  // namespace longshort::core::philox_test
