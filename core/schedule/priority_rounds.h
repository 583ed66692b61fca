// Weighted deficit round-robin: which priority's turn it is.
//
// In a round, each priority may use the worker for its weight times a quantum; the highest goes first. What runs is
// charged when it is taken, and may overdraw: who overdrew waits until later rounds have made up for it. So over time
// those that wait get the worker in proportion to their weights, whatever the sizes of their requests, and nobody
// starves. A priority that does not use its round loses it, but keeps its whole share of one ready: what is urgent and
// rare goes at once.
//
// Thread: not thread-safe; the owner's mutex guards it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/ticket.h"

namespace longshort::core {

class PriorityRounds {
 public:
  struct Options {
    // [low, normal, high], each at least 1.
    std::array<int64_t, kPriorities> weights = {1, 4, 16};
    // What a weight of 1 may use in a round. A smaller one shares more evenly over short times; requests that are
    // longer than it are made up for in later rounds.
    absl::Duration quantum = absl::Milliseconds(10);
  };

  explicit PriorityRounds(const Options& options) : options_(options) { Forgive(); }

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Whose turn it is of those that wait: the highest that is within its share, or will be after the fewest rounds;
  // nullopt if none waits.
  std::optional<Priority> Next(const std::array<bool, kPriorities>& waiting) const;
  // Begins as many rounds as it takes for this one to be within its share.
  void BeginRounds(Priority next);

  // Work of this priority takes (or, negative, did not take) this much of the worker's time.
  void Charge(Priority priority, absl::Duration cost);
  // Nothing waits, so nobody owes: shares are shares of a time for which others wait.
  void Forgive();

 private:
  absl::Duration Share(size_t priority) const { return options_.quantum * options_.weights[priority]; }
  int64_t RoundsUntil(Priority next) const;

  const Options options_;
  std::array<absl::Duration, kPriorities> credit_;  // each at most Share()
};

}  // namespace longshort::core
