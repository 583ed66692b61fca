// The memory that parsing a message takes, counted on its bytes before it is parsed. Two bytes of an empty submessage
// become 50 to 200 bytes, so a message of 8 MiB could take a gigabyte.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <cstdint>

namespace longshort::server {

// Maximum messages, strings, map entries and unknown fields of one request. No valid request has a tenth of them.
inline constexpr int64_t kMaxElements = 16384;
// The bytes of a message that takes a few MB at most, whatever it has, and so is not measured.
inline constexpr size_t kSmallMessage = 16 << 10;

struct MessageSize {
  int64_t bytes = 0;     // serialized
  int64_t elements = 0;  // messages, strings, map entries and unknown fields
  int64_t numbers = 0;   // maximum bytes of repeated numbers in memory

  // Maximum bytes in memory, with what growing arrays leave behind.
  int64_t InMemory() const;
};

// Counts until there are more than `max_elements`, and no further than to the place where the parser finds that the
// bytes are malformed.
MessageSize MeasureMessage(google::protobuf::io::ZeroCopyInputStream& bytes, const google::protobuf::Descriptor& type,
                           int64_t max_elements);

}  // namespace longshort::server
