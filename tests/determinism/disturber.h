// A thread that pauses and resumes requests, and swaps models, while a mix runs.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/requests/request_context.h"
#include "tests/determinism/happenings.h"
#include "tests/determinism/random_choice.h"
#include "tests/determinism/swapped_models.h"

namespace longshort {

class Disturber final {
 public:
  // The arguments must outlive this. `names`: of the models that are swapped.
  Disturber(SwappedModels& models, std::vector<std::string> names, uint64_t seed, Happenings& happenings);
  ~Disturber();

  // A request that may be paused, until it has ended. Thread-safe.
  void Watch(std::shared_ptr<core::PauseFlag> paused);
  void Forget(const std::shared_ptr<core::PauseFlag>& paused);

 private:
  void Work();
  void PauseAndResume();

  SwappedModels& models_;
  const std::vector<std::string> names_;
  Happenings& happenings_;
  Random random_;  // of the thread
  std::mutex mutex_;
  std::condition_variable stopped_;
  // Guarded by mutex_:
  std::set<std::shared_ptr<core::PauseFlag>> watched_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace longshort
