#include "tests/models/gpu/emulation/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// Compiled without the thread sanitizer, as block.cc is.
#if defined(LONGSHORT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

#ifndef __x86_64__
#error "the emulator switches stacks on x86-64 only"
#endif

// Saves the callee-saved registers on this stack, stores the stack pointer, and restores those of another stack.
extern "C" void LongshortSwitchStack(void** save, void* load);
asm(R"(
.text
.p2align 4
.globl LongshortSwitchStack
.type LongshortSwitchStack, @function
LongshortSwitchStack:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size LongshortSwitchStack, . - LongshortSwitchStack
)");

namespace longshort::models::cuda::emulated {
namespace {

constexpr size_t kSavedRegisters = 6;
// An overrun stack reaches this page, not another stack.
constexpr size_t kGuardBytes = 4096;

}  // namespace

Fiber::Fiber(OfThisThread) {
  pthread_attr_t attributes;
  void* bottom = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &bottom, &stack_bytes_);
  pthread_attr_destroy(&attributes);
  stack_ = static_cast<char*>(bottom);
#if defined(LONGSHORT_THREAD_SANITIZER)
  sanitizer_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber() : stack_bytes_(kStackBytes) { MakeStack(); }

Fiber::~Fiber() {
  if (memory_ != nullptr) ReleaseStack();
}

void Fiber::MakeStack() {
  memory_ = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED || mprotect(memory_, kGuardBytes, PROT_NONE) != 0) throw std::bad_alloc();
  stack_ = static_cast<char*>(memory_) + kGuardBytes;
#if defined(LONGSHORT_THREAD_SANITIZER)
  sanitizer_ = __tsan_create_fiber(0);
#endif
}

void Fiber::ReleaseStack() {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(stack_, stack_bytes_);
#endif
#if defined(LONGSHORT_THREAD_SANITIZER)
  __tsan_destroy_fiber(sanitizer_);
#endif
  munmap(memory_, kGuardBytes + kStackBytes);
}

void Fiber::Prepare(void (*entry)()) {
  // The sanitizers would keep the state of an abandoned fiber permanently.
  if (abandoned_) {
    ReleaseStack();
    MakeStack();
  }
  abandoned_ = true;
  fake_stack_ = nullptr;
  // As if `entry` had been called from nowhere: the stack is aligned as at a function's first instruction.
  auto* const top = reinterpret_cast<uintptr_t*>(stack_ + stack_bytes_) - 2;
  top[1] = 0;
  top[0] = reinterpret_cast<uintptr_t>(entry);
  for (size_t i = 1; i <= kSavedRegisters; ++i) *(top - i) = 0;
  stack_pointer_ = top - kSavedRegisters;
}

void Fiber::Switch(Fiber& from, Fiber& to, bool from_ends) {
  if (from_ends) from.abandoned_ = false;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_stack_, to.stack_, to.stack_bytes_);
#endif
#if defined(LONGSHORT_THREAD_SANITIZER)
  __tsan_switch_to_fiber(to.sanitizer_, __tsan_switch_to_fiber_no_sync);
#endif
  LongshortSwitchStack(&from.stack_pointer_, to.stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace longshort::models::cuda::emulated
