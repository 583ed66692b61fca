// Counts the calls in flight, and admits no call at the end of a server's stop. The gate is open, then stopping (calls
// are still admitted), then closed.
//
// gRPC's shutdown with a deadline would wait for every open health Watch, which never ends by itself. So the server
// counts its own calls, waits for them, and then shuts gRPC down at once.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace longshort::server {

class CallGate {
 public:
  // Returns false once closed. After true the caller must call Leave once.
  bool Enter();
  // `unavailable`: the call ended with UNAVAILABLE. Once the server is stopping, such a call counts as cut off.
  void Leave(bool unavailable = false);

  void BeginStop();
  void Close();
  bool stopping() const;
  // Call the function once, when the gate is stopping or closed, in the thread that changes its stage; at once if the
  // gate is there already. WhenStopping is for calls that are useless on a stopping server, WhenClosed for calls that
  // do not end by themselves. Return a number for RemoveWatch; the function may still be running when RemoveWatch
  // returns.
  int64_t WhenStopping(std::function<void()> on_stopping) { return When(Stage::kStopping, std::move(on_stopping)); }
  int64_t WhenClosed(std::function<void()> on_close) { return When(Stage::kClosed, std::move(on_close)); }
  void RemoveWatch(int64_t watch);

  struct Traffic {
    int64_t begun = 0;  // total of calls that entered and of idle calls that resumed
    int64_t inside = 0;
    int64_t idle = 0;  // calls inside that wait for their clients and have no work pending
  };
  Traffic traffic() const;
  // Waits until no call is inside, or until `deadline`. Returns how many were cut off, including those still inside.
  int64_t WaitUntilEmpty(absl::Time deadline);

  // Marks a call inside as idle or not. Thread: one at a time.
  class IdleNote {
   public:
    explicit IdleNote(CallGate& gate) : gate_(gate) {}
    IdleNote(const IdleNote&) = delete;
    IdleNote& operator=(const IdleNote&) = delete;
    ~IdleNote() { Set(false); }
    void Set(bool idle);

   private:
    CallGate& gate_;
    bool idle_ = false;
  };

 private:
  enum class Stage { kOpen, kStopping, kClosed };
  struct Watch {
    Stage stage;
    std::function<void()> on_reached;
  };

  void Reach(Stage stage);
  int64_t When(Stage stage, std::function<void()> on_reached);

  mutable Mutex mutex_;
  ConditionVariable left_;
  Traffic traffic_ ABSL_GUARDED_BY(mutex_);
  int64_t cut_off_ ABSL_GUARDED_BY(mutex_) = 0;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kOpen;
  std::map<int64_t, Watch> watches_ ABSL_GUARDED_BY(mutex_);
  int64_t last_watch_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace longshort::server
