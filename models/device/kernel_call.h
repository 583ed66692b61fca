// A kernel with its arguments, ready for GpuDevice::Launch. Plain C++17, because nvcc compiles it, too.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace longshort::models {

// Thread blocks along each axis: x up to 2^31 - 1, y and z up to 65,535.
struct GridSize {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct LaunchShape {
  GridSize grid = {};
  unsigned threads = 32;    // of a block: a multiple of 32, at most 1,024
  size_t shared_bytes = 0;  // of a block; more than 48 KiB requires an opt-in by the device
};

// A device copies it when it is queued, so the arguments need not outlive the call.
struct KernelCall {
  static constexpr size_t kMaxArgumentBytes = 512;

  const char* name = "";           // of static duration; for messages
  const void* function = nullptr;  // the function that CUDA launches
  // Without nvcc: the function that each thread of an emulated device runs.
  void (*run)(const void* arguments) = nullptr;
  LaunchShape shape;
  size_t argument_bytes = 0;
  alignas(16) unsigned char arguments[kMaxArgumentBytes] = {};

  template <typename Arguments>
  void SetArguments(const Arguments& values) {
    static_assert(std::is_trivially_copyable<Arguments>::value && sizeof(Arguments) <= kMaxArgumentBytes &&
                      alignof(Arguments) <= 16,
                  "a kernel takes one plain struct");
    std::memcpy(arguments, &values, sizeof(values));
    argument_bytes = sizeof(values);
  }

  // Whether the grid has no blocks; a device then launches nothing.
  bool empty() const { return shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0; }
};

}  // namespace longshort::models
