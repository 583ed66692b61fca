#include "server/handlers/fan_out.h"

#include <utility>

namespace longshort {

FanOut::FanOut(int64_t parts, std::shared_ptr<CancellationFlag> cancelled)
    : cancelled_(std::move(cancelled)), left_(parts) {}

bool FanOut::Finished(const absl::Status& status, int64_t parts) {
  const std::lock_guard lock(mutex_);
  if (!status.ok() && status_.ok()) {
    status_ = status;
    cancelled_->store(true);
  }
  left_ -= parts;
  return left_ == 0;
}

absl::Status FanOut::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace longshort
