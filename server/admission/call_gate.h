// Counts the calls in flight, and lets no more in at the end of a server that stops. The gate is open, then it is
// stopping (calls are let in as before), then it is closed.
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
#include <utility>

#include "absl/time/time.h"

namespace longshort::server {

class CallGate {
 public:
  // False once closed. On true the caller owes one Leave.
  bool Enter();
  // `unavailable`: the client was told so. Once the server stops, such a call counts as cut off.
  void Leave(bool unavailable = false);

  void BeginStop();
  void Close();
  bool stopping() const;
  // Each calls what it is given once, when the gate is stopping, or closed, by the thread that makes it so; at once if
  // it is already. For calls that are of no use on a server that stops, and for those that would not end by themselves.
  // Returns a number for Forget, after which what was given may still be running.
  int64_t WhenStopping(std::function<void()> on_stopping) { return When(Stage::kStopping, std::move(on_stopping)); }
  int64_t WhenClosed(std::function<void()> on_close) { return When(Stage::kClosed, std::move(on_close)); }
  void Forget(int64_t watch);

  struct Traffic {
    int64_t begun = 0;  // calls that entered, and idle ones that went on; ever
    int64_t inside = 0;
    int64_t idle = 0;  // of these, streams that wait for their clients, with nothing in work
  };
  Traffic traffic() const;
  // Waits until nobody is inside, or until `deadline`. Returns how many were cut off: those that are left count too.
  int64_t WaitUntilEmpty(absl::Time deadline);

  // Tells the gate whether a call that is inside is idle. Thread: one at a time.
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

  mutable std::mutex mutex_;
  std::condition_variable left_;
  Traffic traffic_;
  int64_t cut_off_ = 0;
  Stage stage_ = Stage::kOpen;
  std::map<int64_t, Watch> watches_;
  int64_t last_watch_ = 0;
};

}  // namespace longshort::server
