#include "server/openai/prompts.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"

namespace longshort::server {
namespace {

constexpr char kPromptForms[] = "a string, a list of strings, a list of token ids, or a list of such lists";

}  // namespace

absl::Status ReadPrompts(JsonRequest& json, const std::string& field,
                         google::protobuf::RepeatedPtrField<openai::Prompt>& prompts) {
  nlohmann::json* const found = json.Find(field);
  if (found == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(field, " is missing; it must be ", kPromptForms));
  LS_RETURN_IF_ERROR(json.CountPart());
  if (found->is_string()) return json.MoveText(field, *found, kPromptForms, *prompts.Add()->mutable_text());
  if (!found->is_array() || found->empty()) return WrongJson(field, *found, kPromptForms);
  const auto kind = found->front().type();
  if (found->front().is_number()) {
    return json.ReadTokenIds(field, *found, *prompts.Add()->mutable_ids()->mutable_ids());
  }
  for (size_t i = 0; i < found->size(); ++i) {
    nlohmann::json& one = (*found)[i];
    const std::string name = absl::StrCat(field, "[", i, "]");
    const std::string as_first = absl::StrCat(", as the first ", field);
    LS_RETURN_IF_ERROR(json.CountPart());
    if (kind == nlohmann::json::value_t::string) {
      LS_RETURN_IF_ERROR(json.MoveText(name, one, ("a string" + as_first).c_str(), *prompts.Add()->mutable_text()));
    } else if (kind != nlohmann::json::value_t::array) {
      return WrongJson(name, one, "a string, a token id, or a list of token ids");
    } else if (!one.is_array()) {
      return WrongJson(name, one, "a list of token ids" + as_first);
    } else {
      LS_RETURN_IF_ERROR(json.ReadTokenIds(name, one, *prompts.Add()->mutable_ids()->mutable_ids()));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadTruncation(JsonRequest& json, bool& truncate) {
  LS_RETURN_IF_ERROR(json.Read("truncate", truncate));
  std::string direction = "Right";
  LS_RETURN_IF_ERROR(json.Read("truncation_direction", direction));
  if (absl::EqualsIgnoreCase(direction, "right")) return absl::OkStatus();
  if (!absl::EqualsIgnoreCase(direction, "left")) {
    return FieldError("truncation_direction", Quoted(direction), "\"Right\" or \"Left\"");
  }
  truncate = false;  // so a text that is too long is an error, which says kTruncation
  return absl::OkStatus();
}

TextInput FromMessage(const openai::Prompt& prompt) {
  if (prompt.has_text()) return {.kind = TextInput::Kind::kText, .text = prompt.text()};
  return {.kind = TextInput::Kind::kIds,
          .ids = absl::MakeConstSpan(prompt.ids().ids().data(), static_cast<size_t>(prompt.ids().ids_size()))};
}

}  // namespace longshort::server
