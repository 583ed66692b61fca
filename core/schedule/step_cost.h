// How long a step of the language model takes, learned from the steps so far.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace longshort::core {

// The rows of a step: one for each sequence that decodes, and the tokens of the pieces of prompts and documents.
struct StepRows {
  int64_t decoding = 0;
  int64_t prefill = 0;
};

// A fixed part (every weight is read once) and a part for each row. What a row costs grows with the keys that it sees,
// but no further than M + L tokens' worth: the parts follow that as they follow everything else that changes.
//
// Each step corrects the parts by the factor by which it was mispredicted, each part as much as it had to do with it.
// So parts stay positive, a part that is not used stays as it is, and a stall counts like a step that took four times
// as long.
//
// A value: copy it to hand it on. Thread: none of its own; whoever owns it guards it.
class StepCost {
 public:
  // A step of these rows, at least one, took so long. A time of zero says nothing.
  void Learn(const StepRows& rows, absl::Duration step);

  // Whether anything was learned. Until then all costs are zero.
  bool known() const { return steps_ > 0; }
  // Whether so much was learned that requests may be refused by it. Not by fewer steps: the first of all may take many
  // times what others do, and of what they take one or two say nothing. That is over in seconds, and until then
  // requests are bounded by their number.
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
