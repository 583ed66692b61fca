// The memory that parsing a message takes, counted on its bytes before it is parsed. Two bytes of an empty submessage
// become 50 to 200 bytes, so a message of 8 MiB could take a gigabyte.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/memory_meter.h"

namespace longshort::server {

// Maximum messages, strings, map entries and unknown fields of one request. No valid request has a tenth of them.
inline constexpr int64_t kMaxElements = 16384;
// The bytes of a message that takes a few MB at most, whatever it has, and so is not measured.
inline constexpr size_t kSmallMessage = 16 << 10;

struct MessageSize {
  int64_t elements = 0;  // messages, strings, map entries and unknown fields
  int64_t memory = 0;    // the most that parsing takes at one time, beside the message's object and the bytes
};

// Errors: INVALID_ARGUMENT for more than kMaxElements.
absl::Status CheckElements(const MessageSize& size);

// What a message's object takes of the heap while the message is empty.
int64_t ObjectBytes(const google::protobuf::Descriptor& type);
// What a string field takes of the heap beside its characters.
inline constexpr int64_t kStringBytes = HeapBytes(sizeof(std::string));
// What a map's node takes for an entry, beside what its strings and messages hold.
int64_t MapNodeBytes(const google::protobuf::Descriptor& entry);

// The array of a repeated field, or the table of a map, which protobuf doubles when it is full.
class RepeatedArray final {
 public:
  // Counts an array of this field's elements, or of pointers to them. If `is_table`, counts the table of a map.
  explicit RepeatedArray(const google::protobuf::FieldDescriptor& field, bool is_table = false);

  // Counts the room for `more` elements. `at_once`: protobuf knows beforehand how many follow.
  absl::Status Add(int64_t more, bool at_once, MemoryMeter& meter);
  int64_t element_bytes() const { return element_bytes_; }

 private:
  bool IsFull() const { return is_table_ ? size_ >= capacity_ * 3 / 4 : size_ > capacity_; }
  int64_t BytesOf(int64_t capacity) const;

  bool is_table_;
  int64_t element_bytes_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

// Counts until there are more than `max_elements`, and no further than to the place where the parser finds that the
// bytes are malformed.
MessageSize MeasureMessage(google::protobuf::io::ZeroCopyInputStream& bytes, const google::protobuf::Descriptor& type,
                           int64_t max_elements);

}  // namespace longshort::server
