#include "tests/models/gpu/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "absl/strings/str_cat.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes)
#endif

namespace longshort::models {
namespace {

constexpr int64_t kAlignment = 256;
// Minimum size of the strip after each piece.
constexpr int64_t kStripBytes = 256;
constexpr unsigned char kStrip = 0xa5;
// Fresh memory: NaN, or, as on most GPUs, zeros.
const unsigned char kFresh = std::getenv("LONGSHORT_DEVICE_ZEROED") == nullptr ? 0xff : 0;

// Size of a piece and its strip.
int64_t SpanOf(size_t bytes) {
  return (static_cast<int64_t>(bytes) + kStripBytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceMemory::DeviceMemory(int64_t bytes, bool hidden) : bytes_(bytes), hidden_(hidden) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<unsigned char*>(memory);
  ASAN_POISON_MEMORY_REGION(base_, bytes_);
  Close();
}

DeviceMemory::~DeviceMemory() {
  ASAN_UNPOISON_MEMORY_REGION(base_, bytes_);
  munmap(base_, bytes_);
}

void* DeviceMemory::Allocate(size_t bytes) {
  const int64_t span = SpanOf(bytes);
  // The first gap that is wide enough.
  int64_t begin = 0;
  for (const auto& [piece, piece_bytes] : pieces_) {
    if (begin + span <= piece) break;
    begin = piece + SpanOf(piece_bytes);
  }
  if (begin + span > bytes_) return nullptr;
  pieces_[begin] = bytes;
  used_ += span;
  const bool was_open = open_;
  Open();
  ASAN_UNPOISON_MEMORY_REGION(base_ + begin, span);
  std::memset(base_ + begin, kFresh, bytes);
  std::memset(base_ + begin + bytes, kStrip, span - bytes);
  ASAN_POISON_MEMORY_REGION(base_ + begin + bytes, span - bytes);
  if (!was_open) Close();
  return base_ + begin;
}

bool DeviceMemory::Free(void* memory) {
  const auto piece = pieces_.find(static_cast<unsigned char*>(memory) - base_);
  if (piece == pieces_.end()) return false;
  ASAN_POISON_MEMORY_REGION(base_ + piece->first, SpanOf(piece->second));
  used_ -= SpanOf(piece->second);
  pieces_.erase(piece);
  return true;
}

void DeviceMemory::Open() {
  if (!open_) mprotect(base_, bytes_, PROT_READ | PROT_WRITE);
  open_ = true;
}

void DeviceMemory::Close() {
  if (!hidden_) return;
  mprotect(base_, bytes_, PROT_NONE);
  open_ = false;
}

bool DeviceMemory::Holds(const void* begin, size_t bytes) const {
  const int64_t offset = static_cast<const unsigned char*>(begin) - base_;
  auto piece = pieces_.upper_bound(offset);
  if (offset < 0 || piece == pieces_.begin()) return false;
  piece = std::prev(piece);
  return offset + static_cast<int64_t>(bytes) <= piece->first + static_cast<int64_t>(piece->second);
}

std::string DeviceMemory::Damage() const {
#if !defined(__SANITIZE_ADDRESS__)  // it has looked
  for (const auto& [begin, bytes] : pieces_) {
    const unsigned char* const strip = base_ + begin + bytes;
    const unsigned char* const end = base_ + begin + SpanOf(bytes);
    const unsigned char* const wrong = std::find_if(strip, end, [](unsigned char byte) { return byte != kStrip; });
    if (wrong != end) return absl::StrCat("a write ", wrong - strip, " bytes past the end of a piece of ", bytes);
  }
#endif
  return "";
}

}  // namespace longshort::models
