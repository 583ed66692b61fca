#include <google/protobuf/descriptor.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/http_rpc/json_message.h"
#include "server/http_rpc/json_scanner.h"
#include "server/rpc/message_size.h"

namespace longshort::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 100;

// Sets a field, or adds to a list.
struct Target {
  Message& message;
  const FieldDescriptor& field;

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

class Reader final : public JsonScanner {
 public:
  Reader(std::string_view json, const Descriptor& type) : JsonScanner(json), type_(type) {}

  absl::Status Read(Message& message) {
    if (AtEnd()) return Wrong("the text is empty; a message without fields is {}");
    LS_RETURN_IF_ERROR(ReadMessage(message));
    return AtEnd() ? absl::OkStatus() : Wrong("something follows the message");
  }

 private:
  struct Step {
    const FieldDescriptor& field;
    int64_t index = -1;  // in a list
  };

  absl::Status Wrong(std::string_view what) const override {
    std::string where;
    for (const Step& step : path_) {
      absl::StrAppend(&where, where.empty() ? "" : ".", step.field.name());
      if (step.index >= 0) absl::StrAppend(&where, "[", step.index, "]");
    }
    return absl::InvalidArgumentError(absl::StrCat("the request is not a ", type_.full_name(), " in JSON: ", where,
                                                   where.empty() ? "" : ": ", std::string(what), ", at byte ",
                                                   place()));
  }
  absl::Status CountElement() {
    if (++elements_ <= kMaxElements) return absl::OkStatus();
    return Wrong(absl::StrCat("there are more than ", kMaxElements, " messages, strings and map entries"));
  }

  absl::Status ReadMessage(Message& message) {
    const Descriptor& type = *message.GetDescriptor();
    if (!Take('{')) return WrongKind("an object");
    if (++depth_ > kMaxDepth) return Wrong(absl::StrCat("nested deeper than ", kMaxDepth));
    LS_RETURN_IF_ERROR(CountElement());
    absl::FixedArray<bool, 64> seen(static_cast<size_t>(type.field_count()), false);
    if (!Take('}')) {
      do {
        LS_RETURN_IF_ERROR(ReadKey());
        const FieldDescriptor* field = Find(type, key_);
        if (field == nullptr) return Unknown(type);
        if (std::exchange(seen[static_cast<size_t>(field->index())], true)) {
          return Wrong(absl::StrCat("the key ", field->name(), " occurs twice"));
        }
        path_.push_back({*field});
        LS_RETURN_IF_ERROR(ReadField(message, *field));
        path_.pop_back();
      } while (Take(','));
      if (!Take('}')) return WrongKind("a comma or the end of the object");
    }
    --depth_;
    return absl::OkStatus();
  }

  // Sets key_ and skips the colon.
  absl::Status ReadKey() {
    if (!NextIs('"')) return WrongKind("a key");
    LS_RETURN_IF_ERROR(ReadString(key_));
    return Take(':') ? absl::OkStatus() : WrongKind("a colon");
  }
  static const FieldDescriptor* Find(const Descriptor& type, const std::string& key) {
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i)->json_name() == key || type.field(i)->name() == key) return type.field(i);
    }
    return nullptr;
  }
  absl::Status Unknown(const Descriptor& type) const {
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(type.field_count()));
    for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
    const std::string all =
        names.empty() ? "there are none" : absl::StrCat("the fields are ", absl::StrJoin(names, ", "));
    return Wrong(absl::StrCat("unknown field ", Quoted(key_), "; ", all));
  }

  absl::Status ReadField(Message& message, const FieldDescriptor& field) {
    if (TakeWord("null")) return absl::OkStatus();
    if (field.is_map()) return ReadMap(message, field);
    if (field.is_repeated()) return ReadList(message, field);
    const auto* oneof = field.real_containing_oneof();
    if (oneof != nullptr && message.GetReflection()->HasOneof(message, oneof)) {
      return Wrong(absl::StrCat("another field of the same oneof, ", oneof->name(), ", is set, too"));
    }
    return ReadValue(message, field);
  }

  absl::Status ReadList(Message& message, const FieldDescriptor& field) {
    if (!Take('[')) return WrongKind("a list");
    if (Take(']')) return absl::OkStatus();
    do {
      ++path_.back().index;
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) LS_RETURN_IF_ERROR(CountElement());
      LS_RETURN_IF_ERROR(ReadValue(message, field));
    } while (Take(','));
    if (!Take(']')) return WrongKind("a comma or the end of the list");
    path_.back().index = -1;
    return absl::OkStatus();
  }

  absl::Status ReadMap(Message& message, const FieldDescriptor& field) {
    const FieldDescriptor& key = *field.message_type()->map_key();
    std::set<std::string> keys;
    if (!Take('{')) return WrongKind("an object");
    if (Take('}')) return absl::OkStatus();
    do {
      LS_RETURN_IF_ERROR(CountElement());
      LS_RETURN_IF_ERROR(ReadKey());
      Message& entry = *message.GetReflection()->AddMessage(&message, &field);
      LS_RETURN_IF_ERROR(PutKey({entry, key}));
      // Keys of a number may have several texts: their values count.
      if (!keys.insert(key.cpp_type() == FieldDescriptor::CPPTYPE_STRING ? key_ : KeyText(entry, key)).second) {
        return Wrong(absl::StrCat("the key ", Quoted(key_), " occurs twice"));
      }
      LS_RETURN_IF_ERROR(ReadValue(entry, *field.message_type()->map_value()));
    } while (Take(','));
    return Take('}') ? absl::OkStatus() : WrongKind("a comma or the end of the object");
  }
  static std::string KeyText(const Message& entry, const FieldDescriptor& key) {
    const Reflection& reflection = *entry.GetReflection();
    switch (key.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return absl::StrCat(reflection.GetInt32(entry, &key));
      case FieldDescriptor::CPPTYPE_INT64:
        return absl::StrCat(reflection.GetInt64(entry, &key));
      case FieldDescriptor::CPPTYPE_UINT32:
        return absl::StrCat(reflection.GetUInt32(entry, &key));
      case FieldDescriptor::CPPTYPE_UINT64:
        return absl::StrCat(reflection.GetUInt64(entry, &key));
      default:
        return reflection.GetBool(entry, &key) ? "true" : "false";
    }
  }
  // Sets a map entry's key from key_.
  absl::Status PutKey(const Target& target) {
    switch (target.field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return PutInteger<int32_t>(key_, target);
      case FieldDescriptor::CPPTYPE_INT64:
        return PutInteger<int64_t>(key_, target);
      case FieldDescriptor::CPPTYPE_UINT32:
        return PutInteger<uint32_t>(key_, target);
      case FieldDescriptor::CPPTYPE_UINT64:
        return PutInteger<uint64_t>(key_, target);
      case FieldDescriptor::CPPTYPE_STRING:
        return target.Put(key_), absl::OkStatus();
      default:
        if (key_ != "true" && key_ != "false") return Wrong("expected the key \"true\" or \"false\"");
        return target.Put(key_ == "true"), absl::OkStatus();
    }
  }

  absl::Status ReadValue(Message& message, const FieldDescriptor& field) {
    const Target target{message, field};
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        const Reflection& reflection = *message.GetReflection();
        return ReadMessage(*(field.is_repeated() ? reflection.AddMessage(&message, &field)
                                                 : reflection.MutableMessage(&message, &field)));
      }
      case FieldDescriptor::CPPTYPE_STRING:
        return field.type() == FieldDescriptor::TYPE_BYTES ? ReadBytes(target) : ReadText(target);
      case FieldDescriptor::CPPTYPE_BOOL:
        if (TakeWord("true")) return target.Put(true), absl::OkStatus();
        if (TakeWord("false")) return target.Put(false), absl::OkStatus();
        return WrongKind("true or false");
      case FieldDescriptor::CPPTYPE_ENUM:
        return ReadEnum(target);
      case FieldDescriptor::CPPTYPE_INT32:
        return ReadInteger<int32_t>(target);
      case FieldDescriptor::CPPTYPE_INT64:
        return ReadInteger<int64_t>(target);
      case FieldDescriptor::CPPTYPE_UINT32:
        return ReadInteger<uint32_t>(target);
      case FieldDescriptor::CPPTYPE_UINT64:
        return ReadInteger<uint64_t>(target);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return ReadFloat<float>(target);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return ReadFloat<double>(target);
    }
    return absl::InternalError("a field has an unknown type");
  }

  absl::Status ReadText(const Target& target) {
    std::string text;
    LS_RETURN_IF_ERROR(ReadString(text));
    target.Put(std::move(text));
    return absl::OkStatus();
  }

  absl::Status ReadBytes(const Target& target) {
    std::string text, bytes;
    LS_RETURN_IF_ERROR(ReadString(text));
    const bool is_url_safe = text.find_first_of("-_") != std::string::npos;
    if (!(is_url_safe ? absl::WebSafeBase64Unescape(text, &bytes) : absl::Base64Unescape(text, &bytes))) {
      return Wrong("the string is not base64");
    }
    target.Put(std::move(bytes));
    return absl::OkStatus();
  }

  absl::Status ReadEnum(const Target& target) {
    const auto& type = *target.field.enum_type();
    if (NextIs('"')) {
      std::string name;
      LS_RETURN_IF_ERROR(ReadString(name));
      const auto* value = type.FindValueByName(name);
      if (value == nullptr) return Wrong(absl::StrCat(Quoted(name), " is not a ", type.name()));
      return target.PutEnum(value->number()), absl::OkStatus();
    }
    LS_RETURN_IF_ERROR(ReadNumber("a name or a number", key_));
    int32_t number = 0;
    LS_RETURN_IF_ERROR(ParseInteger(key_, number));
    return target.PutEnum(number), absl::OkStatus();
  }

  template <typename T>
  absl::Status ReadInteger(const Target& target) {
    LS_RETURN_IF_ERROR(ReadNumber("a whole number", key_));
    return PutInteger<T>(key_, target);
  }
  template <typename T>
  absl::Status PutInteger(const std::string& text, const Target& target) {
    T value = 0;
    LS_RETURN_IF_ERROR(ParseInteger(text, value));
    target.Put(value);
    return absl::OkStatus();
  }
  // 1e3 and 5.0 are whole numbers, too.
  template <typename T>
  absl::Status ParseInteger(const std::string& text, T& value) const {
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec == std::errc() && parsed.ptr == end && !text.empty()) return absl::OkStatus();
    if (!IsNumber(text)) return Wrong(absl::StrCat(Quoted(text), " is not a number"));
    constexpr double kBelow = std::is_signed_v<T> ? static_cast<double>(std::numeric_limits<T>::min()) : 0;
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    double number = 0;
    absl::from_chars(text.data(), end, number);
    if (number < kBelow || number >= above) {
      return Wrong(absl::StrCat(Quoted(text), " is not in [", std::numeric_limits<T>::min(), ", ",
                                std::numeric_limits<T>::max(), "]"));
    }
    if (number != std::floor(number)) return Wrong(absl::StrCat(Quoted(text), " is not a whole number"));
    value = static_cast<T>(number);
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status ReadFloat(const Target& target) {
    LS_RETURN_IF_ERROR(ReadNumber("a number", key_));
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    T value = 0;
    if (key_ == "NaN") {
      value = std::numeric_limits<T>::quiet_NaN();
    } else if (key_ == "Infinity") {
      value = kInfinity;
    } else if (key_ == "-Infinity") {
      value = -kInfinity;
    } else {
      if (!IsNumber(key_)) return Wrong(absl::StrCat(Quoted(key_), " is not a number"));
      const auto parsed = absl::from_chars(key_.data(), key_.data() + key_.size(), value);
      // Also reported for numbers that are too small, for which 0 is near enough.
      if (parsed.ec == std::errc::result_out_of_range && std::abs(value) > 1) {
        return Wrong(absl::StrCat(Quoted(key_), " is too large"));
      }
    }
    target.Put(value);
    return absl::OkStatus();
  }

  const Descriptor& type_;
  std::vector<Step> path_;
  std::string key_;  // also the text of a number
  int depth_ = 0;
  int64_t elements_ = 0;
};

}  // namespace

absl::Status ReadJson(std::string_view json, google::protobuf::Message& message) {
  return Reader(json, *message.GetDescriptor()).Read(message);
}

}  // namespace longshort::server
