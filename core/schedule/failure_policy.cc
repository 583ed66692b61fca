#include "core/schedule/failure_policy.h"

#include <algorithm>

namespace longshort {

bool WorkerTrials::IsOnTrial(int worker) const {
  return !reliable_[worker] && std::find(reliable_.begin(), reliable_.end(), true) != reliable_.end();
}

bool WorkerTrials::MayTake(int worker, const WorkFailures& failures) const {
  return !failures.on_last_try() || !IsOnTrial(worker);
}

}  // namespace longshort
