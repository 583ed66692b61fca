// A fiber: code with its own stack that yields to other fibers of the same OS thread. Every switch is announced to the
// sanitizers. For the thread sanitizer, a fiber is a thread, and a switch does not synchronise.
#pragma once

#include <cstddef>

namespace longshort::models::cuda::emulated {

class Fiber final {
 public:
  // The calling thread's own stack.
  struct OfThisThread {};
  explicit Fiber(OfThisThread);
  // A new stack, for the function that Prepare sets.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it calls `entry`, which must not return: it ends with a switch with `from_ends`. Discards the
  // previous function, wherever it was.
  void Prepare(void (*entry)());
  static void Switch(Fiber& from, Fiber& to, bool from_ends = false);
  // Call first in `entry`.
  static void Arrived();

 private:
  static constexpr size_t kStackBytes = 128 * 1024;

  void MakeStack();
  void ReleaseStack();

  void* stack_pointer_ = nullptr;
  void* memory_ = nullptr;  // null: the thread's own
  char* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // the address sanitizer's
  bool abandoned_ = false;
  void* sanitizer_ = nullptr;  // the thread sanitizer's
};

}  // namespace longshort::models::cuda::emulated
