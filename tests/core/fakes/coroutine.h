// A function with a thread of its own that runs only while its owner waits for it: so a simulation decides who does
// what, and in which order.
#pragma once

#include <sched.h>

#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

namespace longshort::core {

// Has this thread, and those that it makes, run on one processor from now on: turns are passed on several times faster
// within one than between two.
inline void StayOnOneProcessor() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  sched_setaffinity(0, sizeof(here), &here);  // if not, it takes longer
}

class Coroutine final {
 public:
  // `body` begins with the first Resume.
  explicit Coroutine(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          turn_.acquire();
          body();
          ended_ = true;
          owners_turn_.release();
        }) {}
  // REQUIRES: ended.
  ~Coroutine() { thread_.join(); }

  // Of the owner: the body goes on until it pauses or ends. REQUIRES: not ended.
  void Resume() {
    turn_.release();
    owners_turn_.acquire();
  }
  // Of the body: the owner goes on until it resumes this.
  void Pause() {
    owners_turn_.release();
    turn_.acquire();
  }
  bool ended() const { return ended_; }

 private:
  std::binary_semaphore turn_{0};
  std::binary_semaphore owners_turn_{0};
  bool ended_ = false;
  std::thread thread_;  // last: it uses the others at once
};

}  // namespace longshort::core
