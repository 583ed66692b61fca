// A stack of its own for a piece of code that gives way to others and goes on later, all on one OS thread. The
// sanitizers are told about every switch. To the thread sanitizer a fiber is a thread, and a switch is no
// synchronisation.
#pragma once

#include <cstddef>

namespace longshort::models::cuda::emulated {

class Fiber final {
 public:
  // The calling thread's own stack.
  struct OfThisThread {};
  explicit Fiber(OfThisThread);
  // A new stack; Prepare says what runs on it.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it calls `entry`, which must not return: its last deed is a switch with `from_ends`. What ran
  // here before is forgotten, wherever it was.
  void Prepare(void (*entry)());
  static void Switch(Fiber& from, Fiber& to, bool from_ends = false);
  // To be called first in `entry`.
  static void Arrived();

 private:
  static constexpr size_t kStackBytes = 128 * 1024;

  void MakeStack();
  void DropStack();

  void* stack_pointer_ = nullptr;
  void* memory_ = nullptr;  // null: the thread's own
  char* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // the address sanitizer's
  bool abandoned_ = false;
  void* sanitizer_ = nullptr;  // the thread sanitizer's
};

}  // namespace longshort::models::cuda::emulated
