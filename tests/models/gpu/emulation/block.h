// Runs a kernel on the CPU: the threads of a block are fibers on the calling thread, and blocks run in turn. Returns an
// error for barriers that not all threads reach, or reach at different lines, for warps whose lanes meet at different
// instructions, and for misaligned addresses. Makes other faults visible as wrong numbers or a sanitizer's report:
//  - Shared memory has the launch's size to the byte (address sanitizer), and is filled with NaN.
//  - For the thread sanitizer, only barriers order accesses, and blocks are unordered.
//  - Copies by CopyAsync happen as late as allowed, or at once (EmulationOptions): each exposes faults that the other
//  hides.
//  - Threads run in the chosen order between two meetings. One order runs each warp as far as it can get.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/device/kernel_call.h"

namespace longshort::models::cuda::emulated {

// The shared memory that a block may have on an A100.
inline constexpr int64_t kMaxSharedBytes = 163 * 1024;

// kWarpByWarp: a warp runs until all of its threads wait for the block or have ended. So one warp is a whole barrier
// ahead of the others.
enum class ThreadOrder { kAscending, kDescending, kShuffled, kWarpByWarp };

struct EmulationOptions {
  ThreadOrder order = ThreadOrder::kAscending;
  uint64_t seed = 1;  // of the shuffled order
  bool copies_at_once = false;
};

// Thread-safe. Must not be called from a kernel.
// Errors: INVALID_ARGUMENT for a shape that no chip launches, INTERNAL for a fault of the kernel; messages have its
// name.
absl::Status RunKernel(const KernelCall& call, const EmulationOptions& options);

// --- for instructions.h ---

// Why a lane waits for its warp.
enum class Meeting { kNone, kSyncWarp, kShuffle, kLoadMatrices, kMultiply16, kMultiplyTf32 };

constexpr int kLanes = 32;
// The maximum operand of a lane in a meeting.
struct alignas(16) LaneBytes {
  unsigned char bytes[32];
};

// The position of the current thread, and of its block.
int CurrentThread();
int CurrentLane();
int CurrentWarp();
GridSize CurrentBlock();
GridSize CurrentGrid();
unsigned char* CurrentSharedMemory();

// Passes `mine` to the warp, and waits for all lanes. Returns their operands, [32], which are valid until the warp's
// second next meeting.
const LaneBytes* Meet(Meeting meeting, const LaneBytes& mine);
void MeetBlock(int line);

// A pending copy of 16 bytes.
struct PendingCopy {
  void* to = nullptr;
  const void* from = nullptr;  // null: zeros
};
bool CopiesAreMadeAtOnce();
void AddCopy(const PendingCopy& copy);
void CloseCopyGroup();
// Takes the oldest copy of all but the latest `left` groups; false if there is none.
bool TakeCopy(int left, PendingCopy& copy);

// Ends the kernel with an error if the address is not a multiple of `bytes`.
void CheckAligned(const void* address, uintptr_t bytes, const char* what);

// Computes the results of a meeting of this kind from the lanes' operands, once for the whole warp.
void MultiplyWarp(Meeting meeting, const LaneBytes* operands, LaneBytes* sums);

}  // namespace longshort::models::cuda::emulated
