#include <gtest/gtest.h>

#include "core/requests/language_model_requests.h"

namespace longshort::core::prompt_pieces_test {

absl::Time At(int64_t seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// Step i goes from second i to i + 1, and reads i tokens.
PromptPieces Read(int64_t steps) {
  PromptPieces pieces;
  for (int64_t i = 0; i < steps; ++i) pieces.Add({.begin = At(i), .end = At(i + 1), .tokens = i, .steps = 1});
  return pieces;
}

TEST(PromptPieces, AFewStepsAreAPieceEach) {
  const PromptPieces pieces = Read(PromptPieces::kMax);
  ASSERT_EQ(pieces.all().size(), PromptPieces::kMax);
  EXPECT_EQ(pieces.all()[3].begin, At(3));
  EXPECT_EQ(pieces.all()[3].end, At(4));
  EXPECT_EQ(pieces.all()[3].tokens, 3);
  EXPECT_EQ(pieces.all()[3].steps, 1);
}

TEST(PromptPieces, NoStepIsLostOfAnyNumber) {
  for (int64_t steps = 1; steps < 1000; ++steps) {
    const PromptPieces read = Read(steps);
    ASSERT_LE(read.all().size(), PromptPieces::kMax);
    int64_t tokens = 0;
    int64_t steps_in_pieces = 0;
    for (const PromptPiece& piece : read.all()) {
      ASSERT_EQ(piece.begin, At(steps_in_pieces)) << "without gaps, in their order";
      steps_in_pieces += piece.steps;
      ASSERT_EQ(piece.end, At(steps_in_pieces));
      tokens += piece.tokens;
    }
    ASSERT_EQ(steps_in_pieces, steps);
    ASSERT_EQ(tokens, steps * (steps - 1) / 2);
    if (steps > static_cast<int64_t>(PromptPieces::kMax)) {
      ASSERT_GT(read.all().size(), PromptPieces::kMax / 2);
    }
  }
}

}  // namespace longshort::core::prompt_pieces_test
