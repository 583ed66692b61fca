// The steps in which a prompt was read, few however long it is: when there are too many, neighbours become one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/requests/request_timings.h"

namespace longshort {

class PromptPieces final {
 public:
  static constexpr size_t kMost = 32;

  // `step` is one step, and comes after those that were added before.
  void Add(const PromptPiece& step) {
    if (!pieces_.empty() && pieces_.back().steps < steps_of_a_piece_) return Join(step, pieces_.back());
    if (pieces_.size() == kMost) Halve();
    pieces_.push_back(step);
  }

  const std::vector<PromptPiece>& all() const { return pieces_; }

 private:
  static void Join(const PromptPiece& next, PromptPiece& piece) {
    piece.end = next.end;
    piece.tokens += next.tokens;
    piece.steps += next.steps;
  }

  void Halve() {
    for (size_t i = 0; i < kMost / 2; ++i) {
      const PromptPiece next = pieces_[2 * i + 1];
      pieces_[i] = pieces_[2 * i];
      Join(next, pieces_[i]);
    }
    pieces_.resize(kMost / 2);
    steps_of_a_piece_ *= 2;
  }

  std::vector<PromptPiece> pieces_;
  int64_t steps_of_a_piece_ = 1;
};

}  // namespace longshort
