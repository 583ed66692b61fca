#include "tests/models/gpu/emulation/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/models/gpu/emulation/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
// This file is compiled without the thread sanitizer, which would see fibers in its own structures.
#if defined(LONGSHORT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_acquire(address) static_cast<void>(address)
#define __tsan_release(address) static_cast<void>(address)
#endif

namespace longshort::models::cuda::emulated {
namespace {

constexpr unsigned kMaxThreads = 1024;

// Shared memory of the current block, between two guard strips.
class SharedStore final {
 public:
  ~SharedStore() { Release(); }

  unsigned char* Renew(size_t bytes) {
#if defined(LONGSHORT_THREAD_SANITIZER)
    Release();  // the next block must not inherit the sanitizer's state
#endif
    if (memory_ == nullptr) {
      void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      memory_ = static_cast<unsigned char*>(memory);
    }
    bytes_ = bytes;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(memory_, kBytes);
#endif
    FillBytes(memory_, kStrip, kStripBytes);
    FillWithNaN(bytes);
    FillBytes(shared() + bytes, kStrip, kStripBytes);
#if defined(__SANITIZE_ADDRESS__)
    ASAN_POISON_MEMORY_REGION(memory_, kStripBytes);
    ASAN_POISON_MEMORY_REGION(shared() + bytes, kBytes - kStripBytes - bytes);
#endif
    return shared();
  }
  bool StripsAreWhole() const {
#if defined(__SANITIZE_ADDRESS__)
    return true;  // it has looked
#else
    const auto whole = [](const unsigned char* from) {
      return std::all_of(from, from + kStripBytes, [](unsigned char byte) { return byte == kStrip; });
    };
    return whole(memory_) && whole(memory_ + kStripBytes + bytes_);
#endif
  }

 private:
  static constexpr size_t kStripBytes = 128;
  static constexpr size_t kBytes = kMaxSharedBytes + 2 * kStripBytes;
  static constexpr unsigned char kStrip = 0xa5;

  unsigned char* shared() const { return memory_ + kStripBytes; }
  // Not memset, in which the thread sanitizer would see a write.
  static void FillBytes(volatile unsigned char* to, unsigned char byte, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) to[i] = byte;
  }
  void FillWithNaN(size_t bytes) const {  // as float32, bfloat16 and float16
    auto* const words = reinterpret_cast<volatile uint64_t*>(shared());
    for (size_t i = 0; i < bytes / 8; ++i) words[i] = ~uint64_t{0};
    FillBytes(shared() + bytes / 8 * 8, 0xff, bytes % 8);
  }
  void Release() {
    if (memory_ == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(memory_, kBytes);  // the next mapping must not be poisoned
#endif
    munmap(memory_, kBytes);
    memory_ = nullptr;
  }

  unsigned char* memory_ = nullptr;
  size_t bytes_ = 0;
};

enum class State { kRuns, kAtBlockBarrier, kAtWarpMeeting, kEnded };

struct EmulatedThread {
  Fiber fiber;
  State state = State::kRuns;
  int index = 0, lane = 0, warp = 0;
  int line = 0;  // of the block barrier
  Meeting meeting = Meeting::kNone;
  int meetings = 0, barriers = 0;       // so far
  std::vector<PendingCopy> copies;      // of the block, in their order
  std::vector<size_t> group_ends;       // among them
  size_t copied = 0, taken_groups = 0;  // so far
};

struct EmulatedBlock {
  GridSize index, grid;
  unsigned char* shared = nullptr;
};

struct Warp {
  LaneBytes given[2][kLanes], results[2][kLanes];
  int arrived = 0;
  char order[2];  // addresses for the thread sanitizer
};

// The state of an OS thread that runs kernels; created once, because of the stacks.
class Emulator final {
 public:
  absl::Status Run(const KernelCall& call, const EmulationOptions& options);

  EmulatedThread& now() { return *now_; }
  const EmulatedBlock& block() const { return block_; }
  const EmulationOptions& options() const { return options_; }
  const LaneBytes* Meet(Meeting meeting, const LaneBytes& mine);
  void MeetBlock(int line);
  void CheckAligned(const void* address, uintptr_t bytes, const char* what);

 private:
  static void Enter();
  void Prepare();
  void RunBlock();
  bool RunTurns(int first, int count);
  Fiber& NextFiber();
  void Wait(State state);
  // The kernel has the fault in failure_: this thread stops.
  void GiveUp();
  void EndBlockBarrier();
  std::string Stuck() const;
  std::string Describe(const EmulatedThread& thread) const;

  Fiber home_{Fiber::OfThisThread()};
  std::vector<std::unique_ptr<EmulatedThread>> threads_;
  std::vector<Warp> warps_;
  std::vector<int> turns_;
  SharedStore shared_;
  std::mt19937_64 random_;
  EmulationOptions options_;
  EmulatedBlock block_;
  const KernelCall* call_ = nullptr;
  EmulatedThread* now_ = nullptr;
  int count_ = 0, at_barrier_ = 0, ended_ = 0;
  int turn_ = 0, end_of_turns_ = 0;  // in turns_
  std::string failure_;
  char launch_ = 0, end_ = 0, barrier_[2] = {};  // addresses for the thread sanitizer
};

Emulator& OfThisThread() {
  thread_local Emulator emulator;
  return emulator;
}

const char* NameOf(Meeting meeting) {
  switch (meeting) {
    case Meeting::kSyncWarp:
      return "SyncWarp";
    case Meeting::kShuffle:
      return "Shuffle";
    case Meeting::kLoadMatrices:
      return "LoadMatricesTransposed";
    case Meeting::kMultiply16:
      return "MultiplyMatrices";
    case Meeting::kMultiplyTf32:
      return "MultiplyTf32Matrices";
    case Meeting::kNone:
      break;
  }
  return "nothing";
}

absl::Status CheckShape(const KernelCall& call) {
  const LaunchShape& shape = call.shape;
  const auto wrong = [&](absl::string_view field, uint64_t value, absl::string_view rule) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", call.name, ": ", field, " is ", value, "; ", rule));
  };
  if (shape.threads == 0 || shape.threads % kLanes != 0 || shape.threads > kMaxThreads)
    return wrong("threads", shape.threads, "must be a multiple of 32, at most 1024");
  if (shape.shared_bytes > kMaxSharedBytes)
    return wrong("shared_bytes", shape.shared_bytes, absl::StrCat("must be at most ", kMaxSharedBytes));
  if (shape.grid.x > 0x7fffffffu) return wrong("grid.x", shape.grid.x, "must be at most 2147483647");
  if (shape.grid.y > 65535) return wrong("grid.y", shape.grid.y, "must be at most 65535");
  if (shape.grid.z > 65535) return wrong("grid.z", shape.grid.z, "must be at most 65535");
  return absl::OkStatus();
}

absl::Status Emulator::Run(const KernelCall& call, const EmulationOptions& options) {
  if (absl::Status status = CheckShape(call); !status.ok()) return status;
  call_ = &call;
  options_ = options;
  random_.seed(options.seed);
  failure_.clear();
  count_ = static_cast<int>(call.shape.threads);
  while (static_cast<int>(threads_.size()) < count_) threads_.push_back(std::make_unique<EmulatedThread>());
  warps_.resize(count_ / kLanes);
  turns_.resize(count_);
  std::iota(turns_.begin(), turns_.end(), 0);
  if (options.order == ThreadOrder::kDescending) std::reverse(turns_.begin(), turns_.end());

  block_.grid = call.shape.grid;
  GridSize& index = block_.index;
  for (index.z = 0; index.z < block_.grid.z; ++index.z) {
    for (index.y = 0; index.y < block_.grid.y; ++index.y) {
      for (index.x = 0; index.x < block_.grid.x; ++index.x) {
        RunBlock();
        if (failure_.empty() && !shared_.StripsAreWhole()) failure_ = "writes beside its shared memory";
        if (!failure_.empty()) {
          __tsan_acquire(&end_);
          return absl::InternalError(
              absl::StrCat("kernel ", call.name, ", block (", index.x, ", ", index.y, ", ", index.z, "): ", failure_));
        }
      }
    }
  }
  __tsan_acquire(&end_);
  return absl::OkStatus();
}

void Emulator::Prepare() {
  for (Warp& warp : warps_) warp.arrived = 0;
  at_barrier_ = ended_ = 0;
  for (int i = 0; i < count_; ++i) {
    EmulatedThread& thread = *threads_[i];
    thread.state = State::kRuns;
    thread.index = i;
    thread.lane = i % kLanes;
    thread.warp = i / kLanes;
    thread.meetings = thread.barriers = 0;
    thread.copies.clear();
    thread.group_ends.clear();
    thread.copied = thread.taken_groups = 0;
    thread.fiber.Prepare(&Enter);
  }
}

void Emulator::RunBlock() {
  block_.shared = shared_.Renew(call_->shape.shared_bytes);
  Prepare();
  // Threads are ordered after the allocation of their memory, but not after the threads of other blocks.
  __tsan_release(&launch_);
  const int group = options_.order == ThreadOrder::kWarpByWarp ? kLanes : count_;
  while (ended_ < count_ && failure_.empty()) {
    bool moved = false;
    for (int first = 0; first < count_; first += group) {
      while (RunTurns(first, group)) moved = true;
    }
    if (!moved && failure_.empty()) failure_ = Stuck();
  }
}

// Runs each of these threads that can run, to its next meeting. Returns false if none can, or after a fault.
bool Emulator::RunTurns(int first, int count) {
  if (options_.order == ThreadOrder::kShuffled) std::shuffle(turns_.begin(), turns_.end(), random_);
  turn_ = first;
  end_of_turns_ = first + count;
  Fiber& next = NextFiber();
  if (&next == &home_) return false;
  Fiber::Switch(home_, next);
  return failure_.empty();
}

// The next thread whose turn it is becomes the current one. Behind the last, and after a fault, it is home's turn.
Fiber& Emulator::NextFiber() {
  while (turn_ < end_of_turns_ && failure_.empty()) {
    EmulatedThread& thread = *threads_[turns_[turn_++]];
    if (thread.state != State::kRuns) continue;
    now_ = &thread;
    return thread.fiber;
  }
  return home_;
}

void Emulator::Enter() {
  Fiber::Arrived();
  Emulator& self = OfThisThread();
  __tsan_acquire(&self.launch_);
  self.call_->run(self.call_->arguments);
  __tsan_release(&self.end_);
  EmulatedThread& thread = *self.now_;
  thread.state = State::kEnded;
  ++self.ended_;
  if (self.at_barrier_ > 0 && self.at_barrier_ + self.ended_ == self.count_) self.EndBlockBarrier();
  Fiber::Switch(thread.fiber, self.NextFiber(), /*from_ends=*/true);
  __builtin_unreachable();
}

void Emulator::GiveUp() {
  __tsan_release(&end_);
  Wait(State::kEnded);
}

void Emulator::Wait(State state) {
  EmulatedThread& self = *now_;
  self.state = state;
  Fiber::Switch(self.fiber, NextFiber());
}

const LaneBytes* Emulator::Meet(Meeting meeting, const LaneBytes& mine) {
  EmulatedThread& self = *now_;
  Warp& warp = warps_[self.warp];
  // Two halves in turn, so that a fast lane does not overwrite operands that a slow lane has yet to read.
  const int half = self.meetings++ % 2;
  warp.given[half][self.lane] = mine;
  self.meeting = meeting;
  char* const order = &warp.order[half];
  if (meeting == Meeting::kSyncWarp) __tsan_release(order);
  if (++warp.arrived < kLanes) {
    Wait(State::kAtWarpMeeting);
  } else {
    warp.arrived = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      EmulatedThread& other = *threads_[self.warp * kLanes + lane];
      if (other.meeting != meeting) {
        failure_ =
            absl::StrCat("lanes of a warp meet at different instructions: ", Describe(other), ", ", Describe(self));
        GiveUp();
      }
      other.state = State::kRuns;
    }
    if (meeting >= Meeting::kMultiply16) MultiplyWarp(meeting, warp.given[half], warp.results[half]);
  }
  if (meeting == Meeting::kSyncWarp) __tsan_acquire(order);
  return meeting >= Meeting::kMultiply16 ? warp.results[half] : warp.given[half];
}

void Emulator::MeetBlock(int line) {
  EmulatedThread& self = *now_;
  self.line = line;
  char* const order = &barrier_[self.barriers++ % 2];
  __tsan_release(order);
  self.state = State::kAtBlockBarrier;
  if (++at_barrier_ + ended_ == count_) {
    EndBlockBarrier();
  } else {
    Wait(State::kAtBlockBarrier);
  }
  __tsan_acquire(order);
}

void Emulator::EndBlockBarrier() {
  const EmulatedThread* first = nullptr;
  for (int i = 0; i < count_; ++i) {
    const EmulatedThread& thread = *threads_[i];
    if (thread.state != State::kAtBlockBarrier) continue;
    if (first == nullptr) first = &thread;
    if (thread.line != first->line) {
      failure_ = absl::StrCat("threads meet at different barriers: ", Describe(*first), ", ", Describe(thread));
      GiveUp();
    }
  }
  for (int i = 0; i < count_; ++i) {
    if (threads_[i]->state == State::kAtBlockBarrier) threads_[i]->state = State::kRuns;
  }
  at_barrier_ = 0;
}

std::string Emulator::Describe(const EmulatedThread& thread) const {
  const std::string name = absl::StrCat("thread ", thread.index);
  switch (thread.state) {
    case State::kAtBlockBarrier:
      return absl::StrCat(name, " at the SyncBlock of line ", thread.line);
    case State::kAtWarpMeeting:
      return absl::StrCat(name, " at ", NameOf(thread.meeting));
    case State::kEnded:
      return absl::StrCat(name, " has ended");
    case State::kRuns:
      break;
  }
  return absl::StrCat(name, " at ", NameOf(thread.meeting));
}

std::string Emulator::Stuck() const {
  // The first thread of each kind of waiting is enough.
  std::string text = "a barrier that not all threads reach: ";
  std::string before;
  for (int i = 0; i < count_; ++i) {
    const EmulatedThread& thread = *threads_[i];
    const std::string state =
        absl::StrCat(static_cast<int>(thread.state), "/", thread.line, "/", static_cast<int>(thread.meeting));
    if (state != before) absl::StrAppend(&text, i == 0 ? "" : ", ", Describe(thread));
    before = state;
  }
  return text;
}

void Emulator::CheckAligned(const void* address, uintptr_t bytes, const char* what) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  failure_ = absl::StrCat("thread ", now_->index, " ", what, " ", absl::Hex(reinterpret_cast<uintptr_t>(address)));
  GiveUp();
}

}  // namespace

absl::Status RunKernel(const KernelCall& call, const EmulationOptions& options) {
  return OfThisThread().Run(call, options);
}

int CurrentThread() { return OfThisThread().now().index; }
int CurrentLane() { return OfThisThread().now().lane; }
int CurrentWarp() { return OfThisThread().now().warp; }
GridSize CurrentBlock() { return OfThisThread().block().index; }
GridSize CurrentGrid() { return OfThisThread().block().grid; }
unsigned char* CurrentSharedMemory() { return OfThisThread().block().shared; }

const LaneBytes* Meet(Meeting meeting, const LaneBytes& mine) { return OfThisThread().Meet(meeting, mine); }
void MeetBlock(int line) { OfThisThread().MeetBlock(line); }

bool CopiesAreMadeAtOnce() { return OfThisThread().options().copies_at_once; }
void AddCopy(const PendingCopy& copy) { OfThisThread().now().copies.push_back(copy); }
void CloseCopyGroup() {
  EmulatedThread& self = OfThisThread().now();
  self.group_ends.push_back(self.copies.size());
}
bool TakeCopy(int left, PendingCopy& copy) {
  EmulatedThread& self = OfThisThread().now();
  while (self.taken_groups + left < self.group_ends.size()) {
    if (self.copied < self.group_ends[self.taken_groups]) {
      copy = self.copies[self.copied++];
      return true;
    }
    ++self.taken_groups;
  }
  return false;
}

void CheckAligned(const void* address, uintptr_t bytes, const char* what) {
  OfThisThread().CheckAligned(address, bytes, what);
}

}  // namespace longshort::models::cuda::emulated
