// LibTorch's streams on the CPU: tensors get their memory as on a GPU, from the pool of the thread's current stream.
//
// This replaces LibTorch's CPU allocator. A block belongs to the stream that was current when it was allocated. A freed
// block is filled with NaN, and the next tensor of its stream gets it. So kernels must not get a block of another
// stream, except blocks from before their own stream was opened, for which OpenStream waits
// (models/families/cuda_backends.cc).
#pragma once

#include "tests/models/gpu/emulated_device.h"

namespace longshort::models {

// Installs the allocator with the first call. Thread-safe; the object lives until the process ends.
LibraryStreams& TestedLibraryStreams();

}  // namespace longshort::models
