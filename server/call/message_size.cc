#include "server/call/message_size.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace longshort::server {
namespace {

using MessageType = google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// The parser's own limit of nesting.
constexpr int kMaxDepth = 100;
// What an unknown field takes, beside its characters: a place in a vector that doubles, and the set of a message's or a
// group's unknown fields.
constexpr int64_t kUnknownBytes = 96;
constexpr int64_t kPointerBytes = sizeof(void*);

int64_t SizeOf(const MessageType& type) {
  const auto* const prototype = google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  return static_cast<int64_t>(prototype->SpaceUsedLong());
}

int64_t WidthOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_ENUM:
      return sizeof(int32_t);
    case FieldDescriptor::CPPTYPE_BOOL:
      return sizeof(bool);
    default:
      return kPointerBytes;  // also of numbers of 64 bits
  }
}

bool IsFixed(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SFIXED64:
      return true;
    default:
      return false;
  }
}

// What a key or a value takes within a map's node.
int64_t PlaceBytes(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return SizeOf(*field.message_type());
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? static_cast<int64_t>(sizeof(std::string))
                                                             : WidthOf(field);
}

class Measure {
 public:
  Measure(google::protobuf::io::ZeroCopyInputStream& bytes, int64_t max_elements)
      : in_(&bytes), max_elements_(max_elements) {}

  // Counts the fields of a message, or of a group of unknown fields, to its end. False if counting must end.
  bool Message(const MessageType* type, int depth) {
    std::map<int, RepeatedArray> arrays;  // by the field's number
    while (const uint32_t tag = in_.ReadTag()) {
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP) return type == nullptr;
      const FieldDescriptor* const field =
          type == nullptr ? nullptr : type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      RepeatedArray* array = nullptr;
      if (field != nullptr && field->is_repeated()) {
        array = &arrays.try_emplace(field->number(), *field, field->is_map()).first->second;
      }
      if (!Field(tag, field, array, depth) || elements_ > max_elements_) return false;
    }
    return in_.ConsumedEntireMessage();
  }

  MessageSize size() const { return {elements_, meter_.peak()}; }

 private:
  void Count(int64_t bytes) { meter_.Add(bytes).IgnoreError(); }
  void CountElement(RepeatedArray* array, int64_t bytes) {
    ++elements_;
    if (array != nullptr) array->Add(1, false, meter_).IgnoreError();
    Count(bytes);
  }

  // `array`: of a repeated field.
  bool Field(uint32_t tag, const FieldDescriptor* field, RepeatedArray* array, int depth) {
    const WireFormatLite::WireType kind = WireFormatLite::GetTagWireType(tag);
    const bool is_number = field != nullptr && FieldDescriptor::IsTypePackable(field->type());
    switch (kind) {
      case WireFormatLite::WIRETYPE_VARINT:
      case WireFormatLite::WIRETYPE_FIXED32:
      case WireFormatLite::WIRETYPE_FIXED64:
        if (!is_number) CountElement(nullptr, kUnknownBytes);
        if (is_number && array != nullptr) array->Add(1, false, meter_).IgnoreError();
        return WireFormatLite::SkipField(&in_, tag);
      case WireFormatLite::WIRETYPE_START_GROUP:
        CountElement(nullptr, kUnknownBytes);
        return depth < kMaxDepth && Message(nullptr, depth + 1);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        break;
      default:
        return false;
    }
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length) || length > INT32_MAX) return false;
    const auto bytes = static_cast<int>(length);
    if (is_number && array != nullptr) return Packed(bytes, IsFixed(*field), *array);
    // An entry's key and value have their places in the map's node.
    const bool is_placed = field != nullptr && field->containing_type()->options().map_entry();
    if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const MessageType& type = *field->message_type();
      CountElement(array, field->is_map() ? MapNodeBytes(type) : is_placed ? 0 : ObjectBytes(type));
      const auto limit = in_.PushLimit(bytes);
      const bool whole = depth < kMaxDepth && Message(&type, depth + 1);
      in_.PopLimit(limit);
      return whole;
    }
    const bool is_text = field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    CountElement(array, is_text && is_placed ? 0 : is_text ? kStringBytes : kStringBytes + kUnknownBytes);
    if (!in_.Skip(bytes)) return false;  // before the parser takes memory for them
    Count(HeapBytesOfText(length));
    return true;
  }

  // The parser appends numbers of variable length one by one, and others in pieces: what remains of a buffer, then the
  // overlap with the next one.
  bool Packed(int bytes, bool is_fixed, RepeatedArray& array) {
    constexpr int kOverlapBytes = 16;
    const auto width = static_cast<int>(array.element_bytes());
    int rest = 0;  // of an element that two pieces share
    for (bool is_first = true; bytes > 0; is_first = false) {
      const void* data = nullptr;
      int size = 0;
      if (!in_.GetDirectBufferPointer(&data, &size)) return false;
      size = std::min(size, bytes);
      const auto* const begin = static_cast<const signed char*>(data);
      if (!is_fixed) {
        array.Add(std::count_if(begin, begin + size, [](signed char byte) { return byte >= 0; }), false, meter_)
            .IgnoreError();
      }
      for (int piece = 0, left = size; is_fixed && left > 0; left -= piece) {
        piece = !is_first && left == size ? std::min(left, kOverlapBytes) : left;
        array.Add((rest + piece) / width, true, meter_).IgnoreError();
        rest = (rest + piece) % width;
      }
      in_.Skip(size);
      bytes -= size;
    }
    return true;
  }

  google::protobuf::io::CodedInputStream in_;
  const int64_t max_elements_;
  int64_t elements_ = 0;
  MemoryMeter meter_;
};

}  // namespace

absl::Status CheckElements(const MessageSize& size) {
  if (size.elements <= kMaxElements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request has more than ", kMaxElements, " messages, strings, map entries and unknown fields"));
}

int64_t ObjectBytes(const MessageType& type) { return HeapBytes(SizeOf(type)); }

int64_t MapNodeBytes(const MessageType& entry) {
  const int64_t places = PlaceBytes(*entry.map_key()) + PlaceBytes(*entry.map_value());
  return HeapBytes((places + kPointerBytes - 1) / kPointerBytes * kPointerBytes + kPointerBytes);
}

RepeatedArray::RepeatedArray(const FieldDescriptor& field, bool is_table)
    : is_table_(is_table), element_bytes_(WidthOf(field)) {}

absl::Status RepeatedArray::Add(int64_t more, bool at_once, MemoryMeter& meter) {
  constexpr int64_t kFirstBuckets = 8;
  size_ += more;
  while (IsFull()) {
    const int64_t before = BytesOf(capacity_);
    capacity_ = is_table_ ? std::max(kFirstBuckets, 2 * capacity_)
                          : std::max(2 * capacity_ + kPointerBytes / element_bytes_, at_once ? size_ : 0);
    LS_RETURN_IF_ERROR(meter.Replace(before, BytesOf(capacity_)));
  }
  return absl::OkStatus();
}

int64_t RepeatedArray::BytesOf(int64_t capacity) const {
  if (capacity == 0) return 0;
  return HeapBytes(capacity * element_bytes_ + (is_table_ ? 0 : kPointerBytes));
}

MessageSize MeasureMessage(google::protobuf::io::ZeroCopyInputStream& bytes, const MessageType& type,
                           int64_t max_elements) {
  Measure measure(bytes, max_elements);
  measure.Message(&type, 0);
  return measure.size();
}

}  // namespace longshort::server
