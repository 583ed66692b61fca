// Counts the calls in flight, and lets no more in once the server stops.
//
// Shutting gRPC down "until a deadline" would wait for every open health Watch, which never ends by itself. So the
// server counts its own calls, waits for those, and then shuts gRPC down at once.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "absl/time/time.h"

namespace longshort {

class CallGate {
 public:
  // False once closed. On true the caller owes one Leave.
  bool Enter();
  // `unavailable`: the client was told so. Once the gate is closed, such a call counts as cut off.
  void Leave(bool unavailable = false);

  void Close();
  bool closed() const;
  // Calls `on_close` once, when the gate closes, by the thread that closes it; at once if it is closed. For calls that
  // would not end by themselves. Returns a number for Forget, after which it may still be running.
  int64_t WhenClosed(std::function<void()> on_close);
  void Forget(int64_t watch);
  // Waits until nobody is inside, or until `deadline`. Returns how many were cut off: those that are left count too.
  int64_t WaitUntilEmpty(absl::Time deadline);

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  int64_t inside_ = 0;
  int64_t cut_off_ = 0;
  bool closed_ = false;
  std::map<int64_t, std::function<void()>> watches_;
  int64_t last_watch_ = 0;
};

}  // namespace longshort
