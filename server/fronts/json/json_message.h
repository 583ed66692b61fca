// Protobuf's JSON mapping (protobuf.dev/programming-guides/json), without the messages of google.protobuf that have a
// form of their own. Protobuf's reader accepts repeated keys and invalid UTF-8, and is many times slower.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/json_scanner.h"
#include "base/memory_meter.h"

namespace longshort::server {

// Reads a message, which must be empty. The meter counts what the message takes, and what reading it takes beside.
// Errors: the meter's; INVALID_ARGUMENT naming field and byte, for what is not JSON in UTF-8, repeats a key, has an
// unknown field, a value that its field cannot have, two fields of a oneof, or more than kMaxElements
// (server/call/message_size.h).
absl::Status ReadJson(std::string_view json, google::protobuf::Message& message, MemoryMeter& meter);

enum class JsonForm {
  kProtobuf,
  // As the Open Inference Protocol's REST form has messages: fields by their names in the contract, 64-bit integers as
  // numbers, and fields without presence also if they are unset.
  kPlain,
};
std::string WriteJson(const google::protobuf::Message& message, JsonForm form = JsonForm::kProtobuf);

// The values of a message's fields in JSON, except for messages: texts, bytes, numbers, booleans, enums, and keys of
// maps.

// Sets a field, or adds to a list.
struct JsonTarget {
  using Reflection = google::protobuf::Reflection;

  google::protobuf::Message& message;
  const google::protobuf::FieldDescriptor& field;

  void Put(int32_t value) const { Call(&Reflection::AddInt32, &Reflection::SetInt32, value); }
  void Put(int64_t value) const { Call(&Reflection::AddInt64, &Reflection::SetInt64, value); }
  void Put(uint32_t value) const { Call(&Reflection::AddUInt32, &Reflection::SetUInt32, value); }
  void Put(uint64_t value) const { Call(&Reflection::AddUInt64, &Reflection::SetUInt64, value); }
  void Put(float value) const { Call(&Reflection::AddFloat, &Reflection::SetFloat, value); }
  void Put(double value) const { Call(&Reflection::AddDouble, &Reflection::SetDouble, value); }
  void Put(bool value) const { Call(&Reflection::AddBool, &Reflection::SetBool, value); }
  void Put(std::string value) const { Call(&Reflection::AddString, &Reflection::SetString, std::move(value)); }
  void PutEnum(int value) const { Call(&Reflection::AddEnumValue, &Reflection::SetEnumValue, value); }

 private:
  template <typename Function, typename Value>
  void Call(Function add, Function set, Value value) const {
    const Function function = field.is_repeated() ? add : set;
    (message.GetReflection()->*function)(&message, &field, std::move(value));
  }
};

// Reads such values, one after another.
class JsonValueReader : public JsonScanner {
 protected:
  using JsonScanner::JsonScanner;

  // Reads a value for the target, which is not a message.
  absl::Status ReadScalar(const JsonTarget& target);
  // Sets a map entry's key from its text.
  absl::Status PutKey(const std::string& key, const JsonTarget& target) const;

 private:
  struct NumberInJson {
    std::string text;
    bool in_quotes = false;

    // For messages, as the client wrote it, but cut.
    std::string Shown() const;
  };

  absl::Status ReadText(const JsonTarget& target);
  absl::Status ReadBytes(const JsonTarget& target);
  absl::Status ReadBool(const JsonTarget& target);
  absl::Status ReadEnum(const JsonTarget& target);
  // Reads a number, which may be a string.
  absl::Status TakeNumber(std::string_view wanted);
  template <typename T>
  absl::Status ReadInteger(const JsonTarget& target);
  template <typename T>
  absl::Status PutInteger(const NumberInJson& number, const JsonTarget& target) const;
  template <typename T>
  absl::Status ParseInteger(const NumberInJson& number, T& value) const;
  template <typename T>
  absl::Status ReadFloat(const JsonTarget& target);

  NumberInJson number_;  // the last one
};

// The key of a map entry as the one text that stands for it.
std::string KeyText(const google::protobuf::Message& entry, const google::protobuf::FieldDescriptor& key);

}  // namespace longshort::server
