#include <google/protobuf/descriptor.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
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
#include "base/utf8.h"
#include "server/calls/field_error.h"
#include "server/http_rpc/json_message.h"

namespace longshort::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 100;

// The bytes that stand for themselves in a string: ASCII without controls, quotes and backslashes.
constexpr std::array<bool, 256> PlainBytes() {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = PlainBytes();

void AppendUtf8(char32_t character, std::string& text) {
  constexpr int kBits = 6;
  const auto tail = [&](int place) { text += static_cast<char>(0x80 | (character >> (kBits * place) & 0b0011'1111)); };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0 | character >> kBits);
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0 | character >> (2 * kBits));
    tail(1), tail(0);
  } else {
    text += static_cast<char>(0xF0 | character >> (3 * kBits));
    tail(2), tail(1), tail(0);
  }
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

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

class Reader final {
 public:
  Reader(std::string_view json, const Descriptor& type)
      : begin_(json.data()), next_(json.data()), end_(json.data() + json.size()), type_(type) {}

  absl::Status Read(Message& message) {
    SkipSpace();
    if (next_ == end_) return Wrong("the text is empty; a message without fields is {}");
    LS_RETURN_IF_ERROR(ReadMessage(message));
    SkipSpace();
    return next_ == end_ ? absl::OkStatus() : Wrong("something follows the message");
  }

 private:
  struct Step {
    const FieldDescriptor& field;
    int64_t index = -1;  // in a list
  };

  absl::Status Wrong(std::string_view what) const {
    std::string where;
    for (const Step& step : path_) {
      absl::StrAppend(&where, where.empty() ? "" : ".", step.field.name());
      if (step.index >= 0) absl::StrAppend(&where, "[", step.index, "]");
    }
    return absl::InvalidArgumentError(absl::StrCat("the request is not a ", type_.full_name(), " in JSON: ", where,
                                                   where.empty() ? "" : ": ", std::string(what), ", at byte ",
                                                   next_ - begin_ + 1));
  }
  // The error for a value that is not `wanted`.
  absl::Status WrongKind(std::string_view wanted) const {
    return Wrong(absl::StrCat("expected ", std::string(wanted), ", found ", Found()));
  }
  const char* Found() const {
    if (next_ == end_) return "the end of the text";
    switch (*next_) {
      case '{':
        return "an object";
      case '[':
        return "a list";
      case '"':
        return "a string";
      case 't':
      case 'f':
        return "a boolean";
      case 'n':
        return "null";
      default:
        return *next_ == '-' || IsDigit(*next_) ? "a number" : "something else";
    }
  }

  void SkipSpace() {
    while (next_ != end_ && (*next_ == ' ' || *next_ == '\n' || *next_ == '\r' || *next_ == '\t')) ++next_;
  }
  // Skips space and this character, if it is the next one.
  bool Take(char wanted) {
    SkipSpace();
    if (next_ == end_ || *next_ != wanted) return false;
    ++next_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (!std::string_view(next_, static_cast<size_t>(end_ - next_)).starts_with(word)) return false;
    next_ += word.size();
    return true;
  }

  absl::Status CountElement() {
    if (++elements_ <= kMaxJsonElements) return absl::OkStatus();
    return Wrong(absl::StrCat("there are more than ", kMaxJsonElements, " messages, strings and map entries"));
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
    SkipSpace();
    if (next_ == end_ || *next_ != '"') return WrongKind("a key");
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
    SkipSpace();
    std::string text;
    LS_RETURN_IF_ERROR(ReadString(text));
    target.Put(std::move(text));
    return absl::OkStatus();
  }

  absl::Status ReadBytes(const Target& target) {
    SkipSpace();
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
    SkipSpace();
    const auto& type = *target.field.enum_type();
    if (next_ != end_ && *next_ == '"') {
      std::string name;
      LS_RETURN_IF_ERROR(ReadString(name));
      const auto* value = type.FindValueByName(name);
      if (value == nullptr) return Wrong(absl::StrCat(Quoted(name), " is not a ", type.name()));
      return target.PutEnum(value->number()), absl::OkStatus();
    }
    LS_RETURN_IF_ERROR(ReadNumber("a name or a number"));
    int32_t number = 0;
    LS_RETURN_IF_ERROR(ParseInteger(key_, number));
    return target.PutEnum(number), absl::OkStatus();
  }

  template <typename T>
  absl::Status ReadInteger(const Target& target) {
    LS_RETURN_IF_ERROR(ReadNumber("a whole number"));
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
    LS_RETURN_IF_ERROR(ReadNumber("a number"));
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

  // Sets key_ to a number, or to the content of a string that stands for one.
  absl::Status ReadNumber(std::string_view wanted) {
    SkipSpace();
    if (next_ != end_ && *next_ == '"') return ReadString(key_);
    const char* first = next_;
    while (next_ != end_ && (IsDigit(*next_) || std::strchr("+-.eE", *next_) != nullptr) && *next_ != '\0') ++next_;
    key_.assign(first, next_);
    if (IsNumber(key_)) return absl::OkStatus();
    next_ = first;
    return key_.empty() ? WrongKind(wanted) : Wrong(absl::StrCat(Quoted(key_), " is not a number"));
  }
  // Whether JSON allows this number.
  static bool IsNumber(std::string_view text) {
    size_t at = 0;
    const auto take_digits = [&] {
      const size_t first = at;
      while (at < text.size() && IsDigit(text[at])) ++at;
      return at - first;
    };
    if (at < text.size() && text[at] == '-') ++at;
    const bool begins_with_zero = at < text.size() && text[at] == '0';
    const size_t digits = take_digits();
    if (digits == 0 || (begins_with_zero && digits > 1)) return false;
    if (at < text.size() && text[at] == '.') {
      ++at;
      if (take_digits() == 0) return false;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      ++at;
      if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
      if (take_digits() == 0) return false;
    }
    return at == text.size();
  }

  // Reads the string that begins at next_.
  absl::Status ReadString(std::string& text) {
    if (next_ == end_ || *next_ != '"') return WrongKind("a string");
    ++next_;
    text.clear();
    const void* quote = std::memchr(next_, '"', static_cast<size_t>(end_ - next_));
    if (quote != nullptr) text.reserve(static_cast<size_t>(static_cast<const char*>(quote) - next_));
    while (true) {
      const char* run = next_;
      LS_RETURN_IF_ERROR(SkipPlain());
      text.append(run, next_);
      if (next_ == end_) return Wrong("the string has no end");
      if (*next_ == '"') return ++next_, absl::OkStatus();
      if (*next_ != '\\') return Wrong("a string has a control character, which JSON writes as an escape such as \\n");
      LS_RETURN_IF_ERROR(ReadEscape(text));
    }
  }
  // Skips all characters that stand for themselves.
  absl::Status SkipPlain() {
    while (next_ != end_) {
      const auto byte = static_cast<unsigned char>(*next_);
      if (kPlain[byte]) {
        ++next_;
      } else if (byte < 0x80) {
        break;
      } else {
        const auto character = FirstUtf8Character({next_, static_cast<size_t>(end_ - next_)});
        if (!character.has_value()) return Wrong("a string is not valid UTF-8");
        next_ += character->bytes;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadEscape(std::string& text) {
    constexpr char kNames[] = "\"\\/bfnrt", kMeanings[] = "\"\\/\b\f\n\r\t";
    const char name = next_ + 1 < end_ ? next_[1] : '\0';
    if (const char* found = name == '\0' ? nullptr : std::strchr(kNames, name); found != nullptr) {
      text += kMeanings[found - kNames];
      next_ += 2;
      return absl::OkStatus();
    }
    if (name != 'u') return Wrong("a string has an unknown escape");
    char32_t character = 0;
    LS_RETURN_IF_ERROR(ReadCodeUnit(character));
    if (character >= 0xD800 && character < 0xDC00 && end_ - next_ >= 2 && next_[0] == '\\' && next_[1] == 'u') {
      char32_t low = 0;
      LS_RETURN_IF_ERROR(ReadCodeUnit(low));
      if (low >= 0xDC00 && low < 0xE000) character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
    }
    if (character >= 0xD800 && character < 0xE000) return Wrong("a string has half of a surrogate pair");
    AppendUtf8(character, text);
    return absl::OkStatus();
  }
  // Reads "\uXXXX".
  absl::Status ReadCodeUnit(char32_t& unit) {
    constexpr int kLength = 6, kHexadecimal = 16;
    uint32_t value = 0;
    const bool is_long = end_ - next_ >= kLength;
    if (!is_long || std::from_chars(next_ + 2, next_ + kLength, value, kHexadecimal).ptr != next_ + kLength) {
      return Wrong("\\u needs four hexadecimal digits");
    }
    next_ += kLength;
    unit = value;
    return absl::OkStatus();
  }

  const char* const begin_;
  const char* next_;
  const char* const end_;
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
