// Runs a kernel on the processor: the threads of a block are fibers on the calling thread, blocks run one after the
// other. What it notices by itself, and returns as an error: barriers that not all threads reach, or reach at different
// lines; warps whose lanes meet at different instructions; addresses that are not aligned. For the rest it makes wrong
// kernels give wrong numbers, or a sanitizer's report:
//  - Shared memory has the launch's size to the byte (address sanitizer), and is filled with NaN.
//  - To the thread sanitizer only barriers make an order, and blocks have none between them.
//  - Copies by CopyAsync happen as late as is allowed, or at once (EmulationOptions): each finds what the other hides.
//  - Threads run in the chosen order between two meetings.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/gpu/kernel_call.h"

namespace longshort::models::cuda::emulated {

enum class ThreadOrder { kAscending, kDescending, kShuffled };

struct EmulationOptions {
  ThreadOrder order = ThreadOrder::kAscending;
  uint64_t seed = 1;  // of the shuffled order
  bool copies_at_once = false;
};

// Thread: any, and several at a time. Not from within a kernel.
// Errors: INVALID_ARGUMENT for a shape that no chip launches, INTERNAL for what is wrong with the kernel; they name it.
absl::Status RunKernel(const KernelCall& call, const EmulationOptions& options);

// --- for instructions.h ---

// Why a lane waits for its warp.
enum class Meeting { kNone, kSyncWarp, kShuffle, kBallot, kLoadMatrices, kMultiply16, kMultiplyHalf, kMultiplyTf32 };

constexpr int kLanes = 32;
// What a lane gives in a meeting, at the most.
struct alignas(16) LaneBytes {
  unsigned char bytes[32];
};

// Of the thread that runs, and of its block.
int CurrentThread();
int CurrentLane();
int CurrentWarp();
GridSize CurrentBlock();
GridSize CurrentGrid();
unsigned char* CurrentSharedMemory();

// Gives `mine` to the warp and waits until all lanes have given theirs: [32], until the warp's next but one meeting.
const LaneBytes* Meet(Meeting meeting, const LaneBytes& mine);
void MeetBlock(int line);

// 16 bytes that are to be copied.
struct PendingCopy {
  void* to = nullptr;
  const void* from = nullptr;  // null: zeros
};
bool CopiesAreMadeAtOnce();
void AddCopy(const PendingCopy& copy);
void CloseCopyGroup();
// The next of the copies of all but the latest `left` groups, oldest first; false if there is none.
bool TakeCopy(int left, PendingCopy& copy);

// Ends the kernel with an error if the address is no multiple of so many bytes.
void CheckAligned(const void* address, uintptr_t bytes, const char* what);

// IEEE 754 binary16.
float FloatOfHalf(uint16_t bits);
uint16_t HalfOfFloat(float value);

// Makes results of what the lanes gave in a meeting of this kind, once for the whole warp.
void MultiplyWarp(Meeting meeting, const LaneBytes* operands, LaneBytes* sums);

}  // namespace longshort::models::cuda::emulated
