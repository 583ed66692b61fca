#include "server/admission/call_ending.h"

namespace longshort {

bool CallEnding::Enter() {
  const std::lock_guard lock(mutex_);
  if (ended_.has_value()) return false;
  ++at_work_;
  return true;
}

std::optional<absl::Status> CallEnding::Leave() {
  const std::lock_guard lock(mutex_);
  --at_work_;
  return TakeStatus();
}

std::optional<absl::Status> CallEnding::End(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (!ended_.has_value()) ended_ = status;
  return TakeStatus();
}

bool CallEnding::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_.has_value();
}

std::optional<absl::Status> CallEnding::TakeStatus() {
  if (!ended_.has_value() || at_work_ > 0 || finished_) return std::nullopt;
  finished_ = true;
  return ended_;
}

}  // namespace longshort
