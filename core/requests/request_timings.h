// The stages of a language model's request: when they began and how long they took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace longshort::core {

// A step of the model that read a piece of a prompt, or several consecutive steps of a long prompt.
struct PromptPiece {
  absl::Time begin;  // by the engine's clock
  absl::Time end;
  int64_t tokens = 0;
  int64_t steps = 0;
};

// How long a request spent in each stage.
struct RequestTimings {
  absl::Time submitted = absl::InfinitePast();  // by the engine's clock; in the infinite past if it never was
  absl::Duration queue;                         // from submission to the first step
  absl::Duration prefill;                       // from the first step until the last prompt token was read
  absl::Duration decode;                        // from then until the end
  std::vector<PromptPiece> prompt_pieces = {};
};

// The steps in which a prompt was read. Their number is bounded: when there are too many, neighbours are merged.
class PromptPieces final {
 public:
  static constexpr size_t kMax = 32;

  // Adds one step, which is later than all steps before.
  void Add(const PromptPiece& step) {
    if (!pieces_.empty() && pieces_.back().steps < steps_of_a_piece_) return Join(step, pieces_.back());
    if (pieces_.size() == kMax) Halve();
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
    for (size_t i = 0; i < kMax / 2; ++i) {
      const PromptPiece next = pieces_[2 * i + 1];
      pieces_[i] = pieces_[2 * i];
      Join(next, pieces_[i]);
    }
    pieces_.resize(kMax / 2);
    steps_of_a_piece_ *= 2;
  }

  std::vector<PromptPiece> pieces_;
  int64_t steps_of_a_piece_ = 1;
};

// When the stages of a request began.
//
// A stage that was not reached yet is in the infinite future.
struct RequestTimes {
  absl::Time submitted = absl::InfiniteFuture();
  absl::Time started = absl::InfiniteFuture();    // its first step began
  absl::Time prefilled = absl::InfiniteFuture();  // the last prompt token was read
  PromptPieces prompt_pieces;

  // The durations of a request that ends at `end`.
  RequestTimings TimingsAt(absl::Time end) const {
    const absl::Time queued_until = std::min(started, end);
    const absl::Time prefilled_until = std::min(prefilled, end);
    return {.submitted = submitted,
            .queue = queued_until - submitted,
            .prefill = prefilled_until - queued_until,
            .decode = end - prefilled_until,
            .prompt_pieces = prompt_pieces.all()};
  }
};

}  // namespace longshort::core
