// Weighted deficit round-robin: decides which priority runs next.
//
// In a round, each priority may use the worker for its weight times a quantum; the highest goes first. Work is charged
// when it is taken, and may overdraw the share. Then its priority waits until later rounds have made up for it. So
// priorities that wait get the worker in proportion to their weights, whatever the sizes of their requests, and none
// starves. A priority that does not use its round loses it, but keeps one full share. So rare urgent work runs at once.
//
// Thread: not thread-safe; the owner's mutex guards it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/work_attributes.h"

namespace longshort::core {

class PriorityRounds {
 public:
  struct Options {
    // [low, normal, high], each at least 1.
    std::array<int64_t, kPriorities> weights = {1, 4, 16};
    // The share of a weight of 1 in a round. A smaller quantum shares more evenly over short times. Requests longer
    // than it are made up for in later rounds.
    absl::Duration quantum = absl::Milliseconds(10);
  };

  explicit PriorityRounds(const Options& options) : options_(options) { ClearDebts(); }

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // The next priority of those that wait: the highest that has credit, or that will have it after the fewest rounds;
  // nullopt if none waits.
  std::optional<Priority> Next(const std::array<bool, kPriorities>& waiting) const;
  // Begins as many rounds as this priority needs to have credit.
  void BeginRounds(Priority next);

  // Charges worker time to a priority; a negative cost is a refund.
  void Charge(Priority priority, absl::Duration cost);
  // How much of the worker's time priority `other` gets, for each second that `priority` gets, while both wait.
  double Relative(Priority other, Priority priority) const {
    return absl::FDivDuration(Share(static_cast<size_t>(other)), Share(static_cast<size_t>(priority)));
  }

  // Clears all debts when no work waits: a share is a share of the time for which other work waits.
  void ClearDebts();

 private:
  absl::Duration Share(size_t priority) const { return options_.quantum * options_.weights[priority]; }
  int64_t RoundsUntil(Priority next) const;

  const Options options_;
  std::array<absl::Duration, kPriorities> credit_;  // each at most Share()
};

}  // namespace longshort::core
