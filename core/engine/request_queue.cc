#include "core/engine/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {

absl::Status RequestQueue::Push(std::unique_ptr<Job> job) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return absl::UnavailableError("the server is stopping and takes no more requests");
    if (static_cast<int64_t>(jobs_.size()) >= capacity_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the queue is full: ", jobs_.size(), " requests wait, the limit is ", capacity_));
    }
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return absl::OkStatus();
}

std::unique_ptr<Job> RequestQueue::TakeFirst() {
  std::lock_guard lock(mutex_);
  if (jobs_.empty()) return nullptr;
  std::unique_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAbandoned(absl::Time now) {
  const auto wanted = [now](const std::unique_ptr<Job>& job) { return job->WhyAbandoned(now).ok(); };
  std::lock_guard lock(mutex_);
  const auto abandoned = std::stable_partition(jobs_.begin(), jobs_.end(), wanted);
  std::vector<std::unique_ptr<Job>> taken(std::make_move_iterator(abandoned), std::make_move_iterator(jobs_.end()));
  jobs_.erase(abandoned, jobs_.end());
  return taken;
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAll() {
  std::lock_guard lock(mutex_);
  std::vector<std::unique_ptr<Job>> taken(std::make_move_iterator(jobs_.begin()), std::make_move_iterator(jobs_.end()));
  jobs_.clear();
  return taken;
}

int64_t RequestQueue::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(jobs_.size());
}

void RequestQueue::Close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool RequestQueue::WaitForJob() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
  return !jobs_.empty();
}

}  // namespace longshort
