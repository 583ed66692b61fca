// Counts the memory of a request's message while the message is read, and takes it from a budget before it is
// allocated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "base/budget.h"
#include "base/status_macros.h"

namespace longshort {

// What an allocation takes of the heap: jemalloc's size classes are 16 bytes apart, and beyond 128 bytes there are four
// for each power of two.
constexpr int64_t HeapBytes(int64_t bytes) {
  const int64_t step = bytes <= 128 ? 16 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1)) / 4);
  return (bytes + step - 1) / step * step;
}

// What the characters of a string take beside the object.
constexpr int64_t HeapBytesOfText(size_t capacity) {
  constexpr size_t kInObject = 15;
  return capacity <= kInObject ? 0 : HeapBytes(static_cast<int64_t>(std::max(capacity, 2 * kInObject)) + 1);
}

// Thread: one at a time.
class MemoryMeter final {
 public:
  // Counted from the beginning: names, paths and errors of a reader.
  static constexpr int64_t kReaderBytes = 1024;

  // Only counts.
  MemoryMeter() = default;
  // Takes what is counted from the share's budget. The share, which must outlive the meter, holds `others` bytes
  // already.
  MemoryMeter(Budget::Share& share, int64_t others) : share_(&share), others_(others), taken_(0) {}

  // Errors: RESOURCE_EXHAUSTED; see Budget.
  absl::Status Add(int64_t bytes) {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    return held_ <= taken_ ? absl::OkStatus() : Take();
  }
  void Remove(int64_t bytes) { held_ -= bytes; }
  // For an array that moves to a larger one. Both exist meanwhile.
  absl::Status Replace(int64_t from, int64_t to) {
    LS_RETURN_IF_ERROR(Add(to));
    Remove(from);
    return absl::OkStatus();
  }
  // Makes room for `more` elements of a string or a vector, at least twice the room that there is.
  template <typename Array>
  absl::Status MakeRoom(Array& array, size_t more) {
    const size_t needed = array.size() + more, before = array.capacity();
    if (needed <= before) return absl::OkStatus();
    const size_t capacity = std::max(needed, 2 * before);
    LS_RETURN_IF_ERROR(Replace(BytesOf<Array>(before), BytesOf<Array>(capacity)));
    array.reserve(capacity);
    return absl::OkStatus();
  }

  int64_t held() const { return held_; }
  // The most that was held at one time.
  int64_t peak() const { return peak_; }
  // The error that Add gave; OK if it gave none.
  const absl::Status& status() const { return status_; }

 private:
  template <typename Array>
  static int64_t BytesOf(size_t capacity) {
    if constexpr (std::is_same_v<Array, std::string>) return HeapBytesOfText(capacity);
    return capacity == 0 ? 0 : HeapBytes(static_cast<int64_t>(capacity * sizeof(typename Array::value_type)));
  }
  absl::Status Take() {
    constexpr int64_t kSlice = 64 << 10;  // a budget is shared by all threads
    const int64_t taken = (held_ + kSlice - 1) / kSlice * kSlice;
    status_.Update(share_->Grow(others_ + taken));
    if (status_.ok()) taken_ = taken;
    return status_;
  }

  Budget::Share* share_ = nullptr;
  int64_t others_ = 0;
  int64_t taken_ = std::numeric_limits<int64_t>::max();  // of the budget
  int64_t held_ = kReaderBytes;
  int64_t peak_ = kReaderBytes;
  absl::Status status_;
};

}  // namespace longshort
