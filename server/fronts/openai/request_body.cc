#include "server/fronts/openai/request_body.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/number_text.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* TargetOf(const RequestField& row, const Message& message) {
  const std::string name(row.to == nullptr ? row.schema.name : row.to);
  return name.empty() ? nullptr : message.GetDescriptor()->FindFieldByName(name);
}

absl::Status CheckRange(const SchemaField& schema, double number, const JsonView& value) {
  if (number >= schema.low.value_or(number)) return absl::OkStatus();
  return value.Wrong(absl::StrCat("at least ", NumberText(*schema.low)));
}

absl::Status ReadInteger(const RequestField& row, const JsonView& value, Message& message) {
  auto number = static_cast<int64_t>(row.schema.preset.value_or(0));
  if (!value.is_absent()) {
    LS_ASSIGN_OR_RETURN(number, value.Integer());
    LS_RETURN_IF_ERROR(CheckRange(row.schema, static_cast<double>(number), value));
  }
  message.GetReflection()->SetInt64(&message, TargetOf(row, message), number);
  return absl::OkStatus();
}

absl::Status ReadNumber(const RequestField& row, const JsonView& value, Message& message) {
  double number = row.schema.preset.value_or(0);
  if (!value.is_absent()) {
    LS_ASSIGN_OR_RETURN(number, value.Number());
    LS_RETURN_IF_ERROR(CheckRange(row.schema, number, value));
  }
  message.GetReflection()->SetDouble(&message, TargetOf(row, message), number);
  return absl::OkStatus();
}

absl::Status ReadFlag(const RequestField& row, const JsonView& value, Message& message) {
  bool flag = row.schema.preset.value_or(0) != 0;
  if (!value.is_absent()) {
    LS_ASSIGN_OR_RETURN(flag, value.Boolean());
  }
  const FieldDescriptor* const target = TargetOf(row, message);
  if (target != nullptr) message.GetReflection()->SetBool(&message, target, flag);
  return absl::OkStatus();
}

absl::Status ReadField(const RequestField& row, JsonRequest& json, Message& message) {
  const JsonView value = json.At(row.schema.name);
  if (row.read != nullptr) return row.read(json, value, message);
  if (value.is_absent() && !row.schema.required && !row.schema.preset.has_value()) return absl::OkStatus();
  if (row.schema.type == "integer") return ReadInteger(row, value, message);
  if (row.schema.type == "number") return ReadNumber(row, value, message);
  if (row.schema.type == "boolean") return ReadFlag(row, value, message);
  std::string text;
  LS_RETURN_IF_ERROR(json.MoveText(value, "a string", text));
  message.GetReflection()->SetString(&message, TargetOf(row, message), std::move(text));
  return absl::OkStatus();
}

absl::Status Refuse(const RefusedField& row, JsonRequest& json) {
  const JsonView value = json.At(row.field);
  if (value.is_absent()) return absl::OkStatus();
  const auto neutral = nlohmann::json::parse(row.neutral);
  if (std::find(neutral.begin(), neutral.end(), value.value()) != neutral.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(value.path(), " is not supported: ", row.why));
}

// The server cuts texts at their end only: to the left, it cuts none, so that a text that is too long is an error,
// which says how to cut it.
absl::Status ReadDirection(JsonRequest& /*json*/, const JsonView& value, Message& message) {
  if (value.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const std::string_view direction, value.Text());
  const bool is_left = absl::EqualsIgnoreCase({direction.data(), direction.size()}, "left");
  if (is_left) message.GetReflection()->SetBool(&message, message.GetDescriptor()->FindFieldByName("truncate"), false);
  if (is_left || absl::EqualsIgnoreCase({direction.data(), direction.size()}, "right")) return absl::OkStatus();
  return value.Wrong("\"Right\" or \"Left\"");
}

}  // namespace

const char kPromptsType[] = R"({"anyOf": [
  {"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}},
  {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}]})";

RequestBody WithTruncation(RequestBody body) {
  body.fields.push_back(
      RequestField::Flag("truncate", "Cuts a text that is too long at its end; otherwise it is an error."));
  body.fields.push_back({{"truncation_direction", "Right|Left", "With \"Left\", a text that is too long is an error."},
                         nullptr,
                         ReadDirection});
  return body;
}

absl::Status ReadBody(const RequestBody& body, std::string_view text, absl::Span<const JsonListLimit> lists,
                      MemoryMeter& meter, Message& message) {
  JsonRequest json(meter, lists);
  LS_RETURN_IF_ERROR(json.Parse(text));
  for (const RefusedField& row : body.refused) LS_RETURN_IF_ERROR(Refuse(row, json));
  for (const RequestField& row : body.fields) LS_RETURN_IF_ERROR(ReadField(row, json, message));
  return absl::OkStatus();
}

NamedSchema SchemaOf(const RequestBody& body) {
  NamedSchema schema{.name = body.name, .kind = BodyKind::kRequest};
  for (const RequestField& row : body.fields) schema.fields.push_back(row.schema);
  return schema;
}

std::optional<std::string_view> FieldIn(std::string_view message, std::initializer_list<const RequestBody*> bodies) {
  const auto find = [&](std::string_view word) -> std::optional<std::string_view> {
    for (const RequestBody* const body : bodies) {
      for (const RequestField& row : body->fields) {
        if (row.schema.name == word) return word;
      }
      for (const RefusedField& row : body->refused) {
        if (row.field == word) return word;
      }
    }
    return std::nullopt;
  };
  const auto is_name = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t begin = 0; begin < message.size();) {
    size_t end = begin;
    while (end < message.size() && is_name(message[end])) ++end;
    if (const auto found = find(message.substr(begin, end - begin)); found.has_value()) return found;
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace longshort::server
