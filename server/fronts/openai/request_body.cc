#include "server/fronts/openai/request_body.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "nlohmann/json.hpp"
#include "server/call/message_size.h"

namespace longshort::server {
namespace {

// Takes the preset of a value that is absent. Returns false if the value is there, or must be.
template <typename Value>
bool TakePreset(const JsonView& value, const SchemaField& schema, Value& to) {
  if (!value.is_absent() || schema.required) return false;
  if (schema.preset.has_value()) to = static_cast<Value>(*schema.preset);
  return true;
}

absl::Status CheckRange(const SchemaField& schema, double number, const JsonView& value) {
  if (number >= schema.low.value_or(number)) return absl::OkStatus();
  return value.Wrong(absl::StrCat("at least ", NumberText(*schema.low)));
}

}  // namespace

const char kPromptsType[] = R"({"anyOf": [
  {"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}},
  {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}]})";

TextInput ViewOf(const Prompt& prompt) {
  if (const auto* const text = std::get_if<std::string>(&prompt); text != nullptr) return ViewOf(*text);
  return {.kind = TextInput::Kind::kIds, .ids = std::get<std::vector<int32_t>>(prompt)};
}

JsonRequest::~JsonRequest() {
  FreeJson(document_);
  meter_.Remove(document_bytes_);
}

absl::Status JsonRequest::Parse(std::string_view body) {
  // Each token id of a prompt is an element.
  constexpr int64_t kElements = int64_t{1} << 21;
  const int64_t before = meter_.held();
  JsonBuilder builder(body, "the body", {.depth = 8, .elements = kElements, .parts = kMaxElements, .lists = lists_},
                      meter_);
  LS_RETURN_IF_ERROR(builder.Build(document_));
  document_bytes_ = meter_.held() - before;
  return absl::OkStatus();
}

absl::Status JsonRequest::MoveText(const JsonView& text, std::string_view wanted, std::string& to) {
  if (!text.is_text()) return text.Wrong(wanted);
  to = std::move(text.value().get_ref<std::string&>());
  document_bytes_ -= HeapBytesOfText(to.capacity());
  return absl::OkStatus();
}

absl::Status JsonRequest::ReadTokenIds(const JsonView& list, std::vector<int32_t>& ids) {
  if (!list.is_list()) return list.Wrong("a list of token ids");
  LS_RETURN_IF_ERROR(MakeRoom(ids, list.size()));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int64_t> id = WholeNumber(list.value()[i]);
    const bool fits = id >= std::numeric_limits<int32_t>::min() && id <= std::numeric_limits<int32_t>::max();
    if (!fits) return list.At(i).Wrong("a token id");
    ids.push_back(static_cast<int32_t>(*id));
  }
  return absl::OkStatus();
}

absl::Status JsonRequest::ReadPrompts(const JsonView& value, std::vector<Prompt>& prompts) {
  constexpr char kForms[] = "a string, a list of strings, a list of token ids, or a list of such lists";
  const auto add_text = [&](const JsonView& text, std::string_view wanted) {
    return MoveText(text, wanted, std::get<std::string>(prompts.emplace_back(std::string())));
  };
  const auto add_ids = [&](const JsonView& list) {
    return ReadTokenIds(list, std::get<std::vector<int32_t>>(prompts.emplace_back(std::vector<int32_t>())));
  };
  const bool is_list = value.is_list() && value.size() > 0;
  if (!is_list && !value.is_text()) return value.Wrong(kForms);
  const bool is_one = !is_list || value.At(0).value().is_number();
  LS_RETURN_IF_ERROR(MakeRoom(prompts, is_one ? 1 : value.size()));
  if (is_one) return is_list ? add_ids(value) : add_text(value, kForms);
  const JsonView first = value.At(0);
  const bool are_texts = first.is_text();
  const std::string as_first = absl::StrCat(", as the first ", value.path());
  for (size_t i = 0; i < value.size(); ++i) {
    const JsonView one = value.At(i);
    if (are_texts) {
      LS_RETURN_IF_ERROR(add_text(one, "a string" + as_first));
    } else if (!first.is_list()) {
      return one.Wrong("a string, a token id, or a list of token ids");
    } else if (!one.is_list()) {
      return one.Wrong("a list of token ids" + as_first);
    } else {
      LS_RETURN_IF_ERROR(add_ids(one));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadValue(JsonRequest& /*json*/, const JsonView& value, const SchemaField& schema, bool& to) {
  if (TakePreset(value, schema, to)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(to, value.Boolean());
  return absl::OkStatus();
}

absl::Status ReadValue(JsonRequest& /*json*/, const JsonView& value, const SchemaField& schema, int64_t& to) {
  if (TakePreset(value, schema, to)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(to, value.Integer());
  return CheckRange(schema, static_cast<double>(to), value);
}

absl::Status ReadValue(JsonRequest& /*json*/, const JsonView& value, const SchemaField& schema, double& to) {
  if (TakePreset(value, schema, to)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(to, value.Number());
  return CheckRange(schema, to, value);
}

absl::Status ReadValue(JsonRequest& json, const JsonView& value, const SchemaField& schema, std::string& to) {
  if (value.is_absent() && !schema.required) return absl::OkStatus();
  return json.MoveText(value, "a string", to);
}

absl::Status RefuseFields(absl::Span<const RefusedField> refused, JsonRequest& json) {
  for (const RefusedField& row : refused) {
    const JsonView value = json.At(row.field);
    if (value.is_absent()) continue;
    const auto neutral = nlohmann::json::parse(row.neutral);
    if (std::find(neutral.begin(), neutral.end(), value.value()) != neutral.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(value.path(), " is not supported: ", row.why));
  }
  return absl::OkStatus();
}

absl::Status ReadDirection(const JsonView& value, bool& truncate) {
  if (value.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const std::string_view direction, value.Text());
  const bool is_left = absl::EqualsIgnoreCase({direction.data(), direction.size()}, "left");
  if (is_left) truncate = false;
  if (is_left || absl::EqualsIgnoreCase({direction.data(), direction.size()}, "right")) return absl::OkStatus();
  return value.Wrong("\"Right\" or \"Left\"");
}

std::optional<std::string_view> FieldIn(std::string_view message,
                                        absl::FunctionRef<bool(std::string_view word)> is_field) {
  const auto is_name = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t begin = 0; begin < message.size();) {
    size_t end = begin;
    while (end < message.size() && is_name(message[end])) ++end;
    const std::string_view word = message.substr(begin, end - begin);
    if (is_field(word)) return word;
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace longshort::server
