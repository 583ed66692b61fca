#include <google/protobuf/descriptor.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "server/fronts/json/json_message.h"

namespace longshort::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendEscape(unsigned char byte, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 0xF]};
  }
}

void AppendString(std::string_view text, std::string& out) {
  constexpr char kReplacement[] = "\xEF\xBF\xBD";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t run = at;
    bool is_utf8 = true;
    while (at < text.size()) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < 0x20 || byte == '"' || byte == '\\') break;
      const auto character = byte < 0x80 ? std::optional(Utf8Character{byte, 1}) : FirstUtf8Character(text.substr(at));
      is_utf8 = character.has_value();
      if (!is_utf8) break;
      at += static_cast<size_t>(character->bytes);
    }
    out.append(text.substr(run, at - run));
    if (at == text.size()) break;
    is_utf8 ? AppendEscape(static_cast<unsigned char>(text[at]), out) : void(out += kReplacement);
    ++at;
  }
  out += '"';
}

template <typename T>
void AppendNumber(T value, std::string& out) {
  std::array<char, 32> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

template <typename T>
void AppendFloat(T value, std::string& out) {
  if (std::isfinite(value)) return AppendNumber(value, out);
  out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

class Writer final {
 public:
  Writer(JsonForm form, std::string& out) : form_(form), out_(out) {}

  void Write(const Message& message) {
    const auto& type = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    out_ += '{';
    const size_t begin = out_.size();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 0;
      const bool is_set = field.is_repeated() ? count > 0 : reflection.HasField(message, &field);
      if (!is_set && (form_ == JsonForm::kProtobuf || field.has_presence())) continue;
      if (out_.size() != begin) out_ += ',';
      ((out_ += '"') += form_ == JsonForm::kPlain ? field.name() : field.json_name()) += "\":";
      if (!field.is_repeated()) {
        WriteValue(message, field, -1);
      } else if (field.is_map()) {
        WriteMap(message, field, count);
      } else {
        out_ += '[';
        for (int index = 0; index < count; ++index) {
          if (index > 0) out_ += ',';
          WriteValue(message, field, index);
        }
        out_ += ']';
      }
    }
    out_ += '}';
  }

 private:
  void WriteMap(const Message& message, const FieldDescriptor& field, int count) {
    const auto& key = *field.message_type()->map_key();
    out_ += '{';
    for (int index = 0; index < count; ++index) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, index);
      if (index > 0) out_ += ',';
      const size_t begin = out_.size();
      WriteValue(entry, key, -1);
      if (out_[begin] != '"') out_.insert(begin, 1, '"').push_back('"');
      out_ += ':';
      WriteValue(entry, *field.message_type()->map_value(), -1);
    }
    out_ += '}';
  }

  // `index` of a list; -1 for a single value.
  void WriteValue(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const auto get = [&](auto one, auto of_list) {
      return index < 0 ? (reflection.*one)(message, &field) : (reflection.*of_list)(message, &field, index);
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Write(index < 0 ? reflection.GetMessage(message, &field)
                               : reflection.GetRepeatedMessage(message, &field, index));
      case FieldDescriptor::CPPTYPE_STRING:
        return WriteText(message, field, index);
      case FieldDescriptor::CPPTYPE_BOOL:
        return void(out_ += get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false");
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int number = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
        const auto* value = field.enum_type()->FindValueByNumber(number);
        return value == nullptr ? AppendNumber(number, out_) : AppendString(value->name(), out_);
      }
      case FieldDescriptor::CPPTYPE_INT32:
        return AppendNumber(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32), out_);
      case FieldDescriptor::CPPTYPE_INT64:
        return Write64(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
      case FieldDescriptor::CPPTYPE_UINT32:
        return AppendNumber(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32), out_);
      case FieldDescriptor::CPPTYPE_UINT64:
        return Write64(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return AppendFloat(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat), out_);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return AppendFloat(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), out_);
    }
  }

  // JavaScript's numbers hold no 64-bit integers: they are strings.
  template <typename T>
  void Write64(T value) {
    const char* quote = form_ == JsonForm::kProtobuf ? "\"" : "";
    out_ += quote;
    AppendNumber(value, out_);
    out_ += quote;
  }

  void WriteText(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    std::string unused;
    const std::string& text = index < 0 ? reflection.GetStringReference(message, &field, &unused)
                                        : reflection.GetRepeatedStringReference(message, &field, index, &unused);
    if (field.type() != FieldDescriptor::TYPE_BYTES) return AppendString(text, out_);
    ((out_ += '"') += absl::Base64Escape(text)) += '"';
  }

  const JsonForm form_;
  std::string& out_;
};

}  // namespace

std::string WriteJson(const Message& message, JsonForm form) {
  std::string json;
  Writer(form, json).Write(message);
  return json;
}

}  // namespace longshort::server
