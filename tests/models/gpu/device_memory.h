// Memory of an emulated device: pieces of one mapping, with guard strips between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace longshort::models {

class DeviceMemory final {
 public:
  // `hidden`: access faults except between Open and Close. Throws std::bad_alloc.
  DeviceMemory(int64_t bytes, bool hidden);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Filled with NaN, or with zeros if the environment has LONGSHORT_DEVICE_ZEROED; null if there is no room.
  void* Allocate(size_t bytes);
  // False if there is no such piece.
  bool Free(void* memory);

  void Open();
  void Close();

  bool Holds(const void* begin, size_t bytes) const;
  // Whether the address is in the mapping, inside a piece or not.
  bool Spans(const void* address) const { return address >= base_ && address < base_ + bytes_; }
  int64_t pieces() const { return static_cast<int64_t>(pieces_.size()); }
  int64_t free_bytes() const { return bytes_ - used_; }
  // Describes writes outside of all pieces; empty if there were none. REQUIRES: it is open.
  std::string Damage() const;

 private:
  unsigned char* base_ = nullptr;
  int64_t bytes_ = 0, used_ = 0;
  bool hidden_ = false, open_ = true;
  std::map<int64_t, size_t> pieces_;  // offset -> bytes
};

}  // namespace longshort::models
