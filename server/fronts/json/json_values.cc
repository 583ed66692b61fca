#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/call/message_size.h"
#include "server/calls/call_names.h"
#include "server/fronts/json/json_message.h"

namespace longshort::server {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status JsonValueReader::ReadText(const JsonTarget& target) {
  std::string text;
  LS_RETURN_IF_ERROR(ReadString(text));
  LS_RETURN_IF_ERROR(meter_.Add(kStringBytes));
  target.Put(std::move(text));
  return absl::OkStatus();
}

absl::Status JsonValueReader::ReadBytes(const JsonTarget& target) {
  std::string text, bytes;
  LS_RETURN_IF_ERROR(ReadString(text));
  constexpr size_t kCharacters = 4, kBytes = 3;
  const size_t capacity = text.size() / kCharacters * kBytes + text.size() % kCharacters;
  LS_RETURN_IF_ERROR(meter_.Add(kStringBytes + HeapBytesOfText(capacity)));
  meter_.Remove(HeapBytesOfText(text.capacity()));
  const bool is_url_safe = text.find_first_of("-_") != std::string::npos;
  if (!(is_url_safe ? absl::WebSafeBase64Unescape(text, &bytes) : absl::Base64Unescape(text, &bytes))) {
    return Wrong("the string is not base64");
  }
  target.Put(std::move(bytes));
  return absl::OkStatus();
}

absl::Status JsonValueReader::ReadBool(const JsonTarget& target) {
  if (TakeWord("true")) return target.Put(true), absl::OkStatus();
  if (TakeWord("false")) return target.Put(false), absl::OkStatus();
  return WrongKind("true or false");
}

std::string JsonValueReader::NumberInJson::Shown() const {
  const std::string quoted = Quoted(text);
  return in_quotes ? quoted : quoted.substr(1, quoted.size() - 2);
}

absl::Status JsonValueReader::TakeNumber(std::string_view wanted) {
  number_.in_quotes = NextIs('"');
  return ReadNumber(wanted, number_.text);
}

// 1e3 and 5.0 are whole numbers, too.
template <typename T>
absl::Status JsonValueReader::ParseInteger(const NumberInJson& written, T& value) const {
  const std::string& text = written.text;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && !text.empty()) return absl::OkStatus();
  if (!IsNumber(text)) return Wrong(absl::StrCat(written.Shown(), " is not a number"));
  constexpr double kBelow = std::is_signed_v<T> ? static_cast<double>(std::numeric_limits<T>::min()) : 0;
  const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
  double number = 0;
  absl::from_chars(text.data(), end, number);
  if (number < kBelow || number >= above) {
    return Wrong(absl::StrCat(written.Shown(), " is not in [", std::numeric_limits<T>::min(), ", ",
                              std::numeric_limits<T>::max(), "]"));
  }
  if (number != std::floor(number)) return Wrong(absl::StrCat(written.Shown(), " is not a whole number"));
  value = static_cast<T>(number);
  return absl::OkStatus();
}

template <typename T>
absl::Status JsonValueReader::PutInteger(const NumberInJson& number, const JsonTarget& target) const {
  T value = 0;
  LS_RETURN_IF_ERROR(ParseInteger(number, value));
  target.Put(value);
  return absl::OkStatus();
}

template <typename T>
absl::Status JsonValueReader::ReadInteger(const JsonTarget& target) {
  LS_RETURN_IF_ERROR(TakeNumber("a whole number"));
  return PutInteger<T>(number_, target);
}

absl::Status JsonValueReader::ReadEnum(const JsonTarget& target) {
  const auto& type = *target.field.enum_type();
  if (NextIs('"')) {
    std::string name;
    LS_RETURN_IF_ERROR(ReadString(name));
    meter_.Remove(HeapBytesOfText(name.capacity()));
    const auto* value = type.FindValueByName(name);
    if (value == nullptr) return Wrong(absl::StrCat(Quoted(name), " is not a ", type.name()));
    return target.PutEnum(value->number()), absl::OkStatus();
  }
  LS_RETURN_IF_ERROR(TakeNumber("a name or a number"));
  int32_t number = 0;
  LS_RETURN_IF_ERROR(ParseInteger(number_, number));
  return target.PutEnum(number), absl::OkStatus();
}

template <typename T>
absl::Status JsonValueReader::ReadFloat(const JsonTarget& target) {
  LS_RETURN_IF_ERROR(TakeNumber("a number"));
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const std::string& text = number_.text;
  T value = 0;
  if (text == "NaN") {
    value = std::numeric_limits<T>::quiet_NaN();
  } else if (text == "Infinity") {
    value = kInfinity;
  } else if (text == "-Infinity") {
    value = -kInfinity;
  } else {
    if (!IsNumber(text)) return Wrong(absl::StrCat(number_.Shown(), " is not a number"));
    const auto parsed = absl::from_chars(text.data(), text.data() + text.size(), value);
    // Also reported for numbers that are too small, for which 0 is near enough.
    if (parsed.ec == std::errc::result_out_of_range && std::abs(value) > 1) {
      return Wrong(absl::StrCat(number_.Shown(), " is too large"));
    }
  }
  target.Put(value);
  return absl::OkStatus();
}

absl::Status JsonValueReader::ReadScalar(const JsonTarget& target) {
  switch (target.field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return target.field.type() == FieldDescriptor::TYPE_BYTES ? ReadBytes(target) : ReadText(target);
    case FieldDescriptor::CPPTYPE_BOOL:
      return ReadBool(target);
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
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return absl::InternalError("a field has an unknown type");
}

absl::Status JsonValueReader::PutKey(const std::string& key, const JsonTarget& target) const {
  switch (target.field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return PutInteger<int32_t>({.text = key, .in_quotes = true}, target);
    case FieldDescriptor::CPPTYPE_INT64:
      return PutInteger<int64_t>({.text = key, .in_quotes = true}, target);
    case FieldDescriptor::CPPTYPE_UINT32:
      return PutInteger<uint32_t>({.text = key, .in_quotes = true}, target);
    case FieldDescriptor::CPPTYPE_UINT64:
      return PutInteger<uint64_t>({.text = key, .in_quotes = true}, target);
    case FieldDescriptor::CPPTYPE_STRING:
      return target.Put(key), absl::OkStatus();
    default:
      if (key != "true" && key != "false") return Wrong("expected the key \"true\" or \"false\"");
      return target.Put(key == "true"), absl::OkStatus();
  }
}

std::string KeyText(const Message& entry, const FieldDescriptor& key) {
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

}  // namespace longshort::server
