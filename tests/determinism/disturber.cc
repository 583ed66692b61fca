#include "tests/determinism/disturber.h"

#include <chrono>
#include <utility>

namespace longshort {
namespace {

// How often it looks; a request is paused for some of these.
constexpr std::chrono::milliseconds kRound(1);
constexpr double kPause = 0.02;
constexpr double kGoOn = 0.3;
constexpr double kSwap = 0.02;

}  // namespace

Disturber::Disturber(SwappedModels& models, std::vector<std::string> names, uint64_t seed, Happenings& happenings)
    : models_(models), names_(std::move(names)), happenings_(happenings), random_(seed) {
  thread_ = std::thread(&Disturber::Work, this);
}

Disturber::~Disturber() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stopped_.notify_all();
  }
  thread_.join();
}

void Disturber::Watch(std::shared_ptr<core::PauseFlag> paused) {
  const std::lock_guard lock(mutex_);
  watched_.insert(std::move(paused));
}

void Disturber::Forget(const std::shared_ptr<core::PauseFlag>& paused) {
  const std::lock_guard lock(mutex_);
  watched_.erase(paused);
}

void Disturber::Work() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, kRound, [this] { return stop_; })) {
    PauseAndResume();
    if (!Chance(random_, kSwap)) continue;
    lock.unlock();
    models_.Swap(names_[Below(random_, static_cast<int64_t>(names_.size()))]);
    lock.lock();
  }
}

void Disturber::PauseAndResume() {
  for (const std::shared_ptr<core::PauseFlag>& paused : watched_) {
    if (*paused) {
      if (Chance(random_, kGoOn)) *paused = false;
    } else if (Chance(random_, kPause)) {
      *paused = true;
      ++happenings_.pauses;
    }
  }
}

}  // namespace longshort
