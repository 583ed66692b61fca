// Predicts how long a step of the language model takes, from earlier steps.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace longshort::core {

// The rows of a step: one for each sequence that decodes, and the tokens of the pieces of prompts and documents.
struct StepRows {
  int64_t decoding = 0;
  int64_t prefill = 0;
};

// The cost has a fixed part (every weight is read once) and a part for each row. The cost of a row grows with the keys
// that it sees, up to M + L tokens' worth: the estimate follows that, as it follows all other changes.
//
// Each step corrects the parts by the factor by which it was mispredicted, in proportion to their contribution. So
// parts stay positive, an unused part does not change, and a stall counts like a step that took four times as long.
//
// A value type; copies are independent. Thread: not thread-safe; the owner guards it.
class StepCost {
 public:
  // Records the time of a step with these rows, at least one. A time of zero is ignored.
  void Learn(const StepRows& rows, absl::Duration step);

  // Whether anything was learned. Until then all costs are zero.
  bool known() const { return steps_ > 0; }
  // Whether the cost is reliable enough to refuse requests by it. The very first steps may take many times longer than
  // later ones. Ten steps take seconds at most, and until then requests are limited by their number.
  bool reliable() const { return steps_ >= 10; }
  absl::Duration Of(const StepRows& rows) const;
  absl::Duration fixed() const { return absl::Seconds(fixed_); }
  absl::Duration decoding_row() const { return absl::Seconds(decoding_row_); }
  absl::Duration prefill_row() const { return absl::Seconds(prefill_row_); }

 private:
  double fixed_ = 0;
  double decoding_row_ = 0;
  double prefill_row_ = 0;
  int64_t steps_ = 0;
};

}  // namespace longshort::core
