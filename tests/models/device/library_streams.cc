#include "tests/models/device/library_streams.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "c10/core/CPUAllocator.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes)
#endif

namespace longshort::models {
namespace {

constexpr std::align_val_t kAlignment{64};
// Sizes of blocks are multiples of it, as on a GPU. At least one byte follows a tensor, so that the end of a tensor is
// not the address of another block.
constexpr size_t kBlockUnit = 512;
// Larger blocks go back to the system, because they would add up.
constexpr size_t kMaxPooledBytes = size_t{1} << 20;

thread_local int64_t current_stream = LibraryStreams::kDefault;

class StreamPools final : public LibraryStreams, public c10::Allocator {
 public:
  int64_t Open() override {
    const MutexLock lock(mutex_);
    open_.insert({++last_stream_, blocks_made_});
    return last_stream_;
  }

  void Close(int64_t stream) override {
    const MutexLock lock(mutex_);
    open_.erase(stream);
    for (auto pool = pools_.lower_bound({stream, 0}); pool != pools_.end() && pool->first.first == stream;) {
      for (void* const memory : pool->second) Release(memory);
      pool = pools_.erase(pool);
    }
  }

  int64_t SetCurrent(int64_t stream) override { return std::exchange(current_stream, stream); }

  std::string Misuse(const void* address, int64_t stream) const override {
    const MutexLock lock(mutex_);
    auto block = blocks_.upper_bound(reinterpret_cast<uintptr_t>(address));
    if (block == blocks_.begin()) return "";
    block = std::prev(block);
    if (reinterpret_cast<uintptr_t>(address) - block->first >= block->second.bytes) return "";
    if (!block->second.is_used) return "a tensor's memory that is freed";
    const bool is_older = block->second.number <= open_.at(stream);
    if (block->second.stream == stream || is_older) return "";
    return absl::StrCat("a tensor of stream ", block->second.stream, " on stream ", stream,
                        "; LibTorch's current stream was another one when the tensor was made");
  }

  c10::DataPtr allocate(size_t bytes) override {
    void* const memory = bytes == 0 ? nullptr : Take(bytes);
    return {memory, memory, &StreamPools::Delete, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &StreamPools::Delete; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  struct Block {
    size_t bytes = 0;
    int64_t stream = 0;
    int64_t number = 0;  // of the allocation, from 1
    bool is_used = false;
  };

  static void Delete(void* memory);

  void* Take(size_t bytes) {
    const size_t size = (bytes / kBlockUnit + 1) * kBlockUnit;
    const MutexLock lock(mutex_);
    std::vector<void*>& pool = pools_[{current_stream, size}];
    void* memory = nullptr;
    if (pool.empty()) {
      memory = ::operator new(size, kAlignment);
    } else {
      memory = pool.back();
      pool.pop_back();
    }
    blocks_[reinterpret_cast<uintptr_t>(memory)] = {
        .bytes = size, .stream = current_stream, .number = ++blocks_made_, .is_used = true};
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    ASAN_POISON_MEMORY_REGION(static_cast<char*>(memory) + bytes, size - bytes);
    return memory;
  }

  void Free(void* memory) {
    const MutexLock lock(mutex_);
    Block& block = blocks_.at(reinterpret_cast<uintptr_t>(memory));
    block.is_used = false;
    const bool is_open = block.stream == kDefault || open_.contains(block.stream);
    if (!is_open || block.bytes > kMaxPooledBytes) return Release(memory);
    ASAN_UNPOISON_MEMORY_REGION(memory, block.bytes);
    std::memset(memory, 0xff, block.bytes);  // NaN in every type
    ASAN_POISON_MEMORY_REGION(memory, block.bytes);
    pools_[{block.stream, block.bytes}].push_back(memory);
  }

  void Release(void* memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto block = blocks_.find(reinterpret_cast<uintptr_t>(memory));
    ASAN_UNPOISON_MEMORY_REGION(memory, block->second.bytes);
    blocks_.erase(block);
    ::operator delete(memory, kAlignment);
  }

  mutable Mutex mutex_;
  int64_t last_stream_ ABSL_GUARDED_BY(mutex_) = kDefault;
  int64_t blocks_made_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, int64_t> open_ ABSL_GUARDED_BY(mutex_);  // stream -> blocks_made_ when it was opened
  std::map<uintptr_t, Block> blocks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<int64_t, size_t>, std::vector<void*>> pools_ ABSL_GUARDED_BY(mutex_);  // freed blocks
};

StreamPools& Pools() {
  static StreamPools& pools = *[] {
    auto* const made = new StreamPools;
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  return pools;
}

void StreamPools::Delete(void* memory) {
  if (memory != nullptr) Pools().Free(memory);
}

}  // namespace

LibraryStreams& TestedLibraryStreams() { return Pools(); }

}  // namespace longshort::models
