#include "server/rpc/message_size.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace longshort::server {
namespace {

using MessageType = google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// An element with the pointer to it. The largest message that may be repeated often, a tensor of the Open Inference
// Protocol, has 150.
constexpr int64_t kElementBytes = 256;
// The parser's own limit of nesting.
constexpr int kMaxDepth = 100;

// The bytes in memory, at most, for each serialized byte of packed numbers: those that are not of fixed length may have
// one byte each.
int64_t Growth(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_SINT64:
      return sizeof(int64_t);
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_ENUM:
      return sizeof(int32_t);
    default:
      return 1;
  }
}

class Measure {
 public:
  Measure(google::protobuf::io::ZeroCopyInputStream& bytes, int64_t max_elements)
      : in_(&bytes), max_elements_(max_elements) {}

  // Counts the fields of a message, or of a group of unknown fields, to its end. False if counting must end.
  bool Message(const MessageType* type, int depth) {
    while (const uint32_t tag = in_.ReadTag()) {
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP) return type == nullptr;
      const FieldDescriptor* const field =
          type == nullptr ? nullptr : type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (!Field(tag, field, depth) || size_.elements > max_elements_) return false;
    }
    return in_.ConsumedEntireMessage();
  }

  const MessageSize& size() const { return size_; }

 private:
  bool Field(uint32_t tag, const FieldDescriptor* field, int depth) {
    const WireFormatLite::WireType kind = WireFormatLite::GetTagWireType(tag);
    const bool is_number = field != nullptr && FieldDescriptor::IsTypePackable(field->type());
    switch (kind) {
      case WireFormatLite::WIRETYPE_VARINT:
      case WireFormatLite::WIRETYPE_FIXED32:
      case WireFormatLite::WIRETYPE_FIXED64:
        if (!is_number) ++size_.elements;
        if (is_number && field->is_repeated()) size_.numbers += sizeof(int64_t);
        return WireFormatLite::SkipField(&in_, tag);
      case WireFormatLite::WIRETYPE_START_GROUP:
        ++size_.elements;
        return depth < kMaxDepth && Message(nullptr, depth + 1);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        break;
      default:
        return false;
    }
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length) || length > INT32_MAX) return false;
    const auto bytes = static_cast<int>(length);
    if (is_number && field->is_repeated()) {
      if (!in_.Skip(bytes)) return false;
      size_.numbers += bytes * Growth(*field);
      return true;
    }
    ++size_.elements;
    if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return in_.Skip(bytes);
    const auto limit = in_.PushLimit(bytes);
    const bool whole = depth < kMaxDepth && Message(field->message_type(), depth + 1);
    in_.PopLimit(limit);
    return whole;
  }

  google::protobuf::io::CodedInputStream in_;
  const int64_t max_elements_;
  MessageSize size_;
};

}  // namespace

int64_t MessageSize::InMemory() const { return bytes + elements * kElementBytes + 2 * numbers; }

MessageSize MeasureMessage(google::protobuf::io::ZeroCopyInputStream& bytes, const MessageType& type,
                           int64_t max_elements) {
  Measure measure(bytes, max_elements);
  measure.Message(&type, 0);
  MessageSize size = measure.size();
  size.bytes = bytes.ByteCount();
  return size;
}

}  // namespace longshort::server
