#include "server/open_inference_v2/plain_json.h"

#include <google/protobuf/descriptor.h>

#include <string>

namespace longshort::server {
namespace {

using google::protobuf::FieldDescriptor;
using nlohmann::ordered_json;

// The value of a field, or, with an index, of one element of a repeated field.
template <typename GetOne, typename GetElement, typename... Index>
auto ReadField(const google::protobuf::Message& message, const FieldDescriptor& field, GetOne one, GetElement element,
               Index... index) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if constexpr (sizeof...(Index) == 0) {
    return (reflection.*one)(message, &field);
  } else {
    return (reflection.*element)(message, &field, index...);
  }
}

template <typename... Index>
ordered_json FieldValue(const google::protobuf::Message& message, const FieldDescriptor& field, Index... index) {
  using Reflection = google::protobuf::Reflection;
  const auto read = [&](auto one, auto element) { return ReadField(message, field, one, element, index...); };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return read(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_INT32:
      return read(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return read(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return read(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return read(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return read(&Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return read(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_ENUM:
      return read(&Reflection::GetEnum, &Reflection::GetRepeatedEnum)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return read(&Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  if constexpr (sizeof...(Index) == 0) {
    return PlainJson(message.GetReflection()->GetMessage(message, &field));
  } else {
    return PlainJson(message.GetReflection()->GetRepeatedMessage(message, &field, index...));
  }
}

}  // namespace

ordered_json PlainJson(const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::Descriptor& descriptor = *message.GetDescriptor();
  ordered_json object = ordered_json::object();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.is_repeated()) {
      ordered_json& list = object[field.name()] = ordered_json::array();
      for (int k = 0; k < reflection.FieldSize(message, &field); ++k) list.push_back(FieldValue(message, field, k));
    } else if (!field.has_presence() || reflection.HasField(message, &field)) {
      object[field.name()] = FieldValue(message, field);
    }
  }
  return object;
}

}  // namespace longshort::server
