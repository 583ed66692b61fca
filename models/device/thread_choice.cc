#include "models/device/thread_choice.h"

#include <algorithm>
#include <bit>

namespace longshort::models {
namespace {

// Maximum duration of a trial of one thread, unless the team is known to be slower.
constexpr double kLongestTrialSeconds = 10e-3;
// A team must be faster by this factor, because it keeps its CPUs from other work, such as writing responses to
// clients.
constexpr double kWorthATeam = 1.25;
// A team that gets only this many CPUs, spinning included, is at most this many times as fast as one thread.
constexpr double kFewProcessors = 1.5;
// Weight of the newest step in a mean.
constexpr double kNewest = 0.25;
// Steps between trials of the slower choice: initial and maximum distance.
constexpr int64_t kFirstDistance = 64, kLastDistance = 1024;

}  // namespace

ThreadChoice::Size& ThreadChoice::SizeOf(int64_t work) {
  return sizes_[std::bit_width(static_cast<uint64_t>(work)) - 1];
}

bool ThreadChoice::IsOneThreadWorthATrial(const Size& size, int64_t work) const {
  if (size.team == 0) return false;
  const double seconds = size.team * static_cast<double>(work);
  return threads_ * seconds < kLongestTrialSeconds || size.team > threads_ * size.best_team ||
         threads_ * size.team_share < kFewProcessors;
}

int ThreadChoice::Next(int64_t work) {
  if (threads_ == 1) return 1;
  Size& size = SizeOf(work);
  size.tries_other = (size.is_alone || IsOneThreadWorthATrial(size, work)) && --size.steps_to_trial < 0;
  return size.is_alone == size.tries_other ? threads_ : 1;
}

void ThreadChoice::Record(int64_t work, double seconds, double processor_seconds) {
  if (threads_ == 1) return;
  Size& size = SizeOf(work);
  const double newest = seconds / static_cast<double>(work);
  const bool was_alone = size.is_alone != size.tries_other;
  double& mean = was_alone ? size.alone : size.team;
  // The previous time of a choice that is rarely tried is out of date.
  mean = mean == 0 || size.tries_other ? newest : mean + kNewest * (newest - mean);
  if (!was_alone) {
    size.best_team = size.best_team == 0 ? newest : std::min(size.best_team, newest);
    size.team_share += kNewest * (processor_seconds / (threads_ * seconds) - size.team_share);
  }

  const bool is_alone_better = size.alone > 0 && size.alone < kWorthATeam * size.team;
  const bool has_changed = is_alone_better != size.is_alone;
  if (!has_changed && !size.tries_other) return;
  size.is_alone = is_alone_better;
  size.trial_distance =
      has_changed ? kFirstDistance : std::clamp(2 * size.trial_distance, kFirstDistance, kLastDistance);
  size.steps_to_trial = size.trial_distance;
}

}  // namespace longshort::models
