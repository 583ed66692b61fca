// Notices that the other side of a stream does not go on.
#pragma once

#include <grpcpp/alarm.h>

#include <functional>
#include <memory>
#include <mutex>

#include "absl/time/time.h"

namespace longshort {

// Thread-safe. The timer holds no reference: a watch ends with its last owner.
class PauseWatch final : public std::enable_shared_from_this<PauseWatch> {
 public:
  // Calls `on_pause` once, by a thread of gRPC's, if nothing went on for `longest`.
  static std::shared_ptr<PauseWatch> Start(absl::Duration longest, std::function<void()> on_pause);

  // Something went on.
  void GoOn();
  // Nobody is waited for any more. `on_pause` may still be running.
  void Stop();

 private:
  PauseWatch(absl::Duration longest, std::function<void()> on_pause);

  // Sets the timer for the moment when the pause will have been too long. With the mutex held.
  void SetTimer();
  void OnTimer();

  const absl::Duration longest_;
  std::mutex mutex_;  // guards what follows
  std::function<void()> on_pause_;
  absl::Time last_;
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace longshort
