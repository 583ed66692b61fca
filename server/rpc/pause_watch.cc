#include "server/rpc/pause_watch.h"

#include <utility>

#include "base/clock.h"

namespace longshort {

PauseWatch::PauseWatch(absl::Duration longest, std::function<void()> on_pause)
    : longest_(longest), on_pause_(std::move(on_pause)), last_(MonotonicNow()) {}

std::shared_ptr<PauseWatch> PauseWatch::Start(absl::Duration longest, std::function<void()> on_pause) {
  auto watch = std::shared_ptr<PauseWatch>(new PauseWatch(longest, std::move(on_pause)));
  const std::lock_guard lock(watch->mutex_);
  watch->SetTimer();
  return watch;
}

void PauseWatch::GoOn() {
  const std::lock_guard lock(mutex_);
  last_ = MonotonicNow();
}

void PauseWatch::Stop() {
  const std::lock_guard lock(mutex_);
  on_pause_ = nullptr;
  alarm_.reset();
}

void PauseWatch::SetTimer() {
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(ToWallClock(last_ + longest_)), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<PauseWatch> watch = weak.lock();
    if (reached && watch != nullptr) watch->OnTimer();
  });
}

void PauseWatch::OnTimer() {
  std::function<void()> on_pause;
  {
    const std::lock_guard lock(mutex_);
    if (on_pause_ == nullptr) return;
    if (MonotonicNow() < last_ + longest_) return SetTimer();
    on_pause = std::exchange(on_pause_, nullptr);
  }
  on_pause();
}

}  // namespace longshort
