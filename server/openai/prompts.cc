#include "server/openai/prompts.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr char kPromptForms[] = "a string, a list of strings, a list of token ids, or a list of such lists";

}  // namespace

absl::Status ReadPrompts(const JsonRequest& json, const std::string& field,
                         google::protobuf::RepeatedPtrField<openai::Prompt>& prompts) {
  const nlohmann::json* const found = json.Find(field);
  if (found == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(field, " is missing; it must be ", kPromptForms));
  if (found->is_string()) {
    prompts.Add()->set_text(found->get<std::string>());
    return absl::OkStatus();
  }
  if (!found->is_array() || found->empty()) return WrongJson(field, *found, kPromptForms);
  const nlohmann::json& first = found->front();
  if (first.is_number()) return ReadTokenIds(field, *found, *prompts.Add()->mutable_ids()->mutable_ids());
  for (size_t i = 0; i < found->size(); ++i) {
    const nlohmann::json& one = (*found)[i];
    const std::string name = absl::StrCat(field, "[", i, "]");
    if (first.is_string() && one.is_string()) {
      prompts.Add()->set_text(one.get<std::string>());
    } else if (first.is_array() && one.is_array()) {
      LS_RETURN_IF_ERROR(ReadTokenIds(name, one, *prompts.Add()->mutable_ids()->mutable_ids()));
    } else {
      const std::string as_first = absl::StrCat(", as the first ", field);
      return WrongJson(name, one,
                       first.is_string()  ? "a string" + as_first
                       : first.is_array() ? "a list of token ids" + as_first
                                          : "a string, a token id, or a list of token ids");
    }
  }
  return absl::OkStatus();
}

TextInput FromMessage(const openai::Prompt& prompt) {
  if (prompt.has_text()) return {.kind = TextInput::Kind::kText, .text = prompt.text()};
  return {.kind = TextInput::Kind::kIds,
          .ids = absl::MakeConstSpan(prompt.ids().ids().data(), static_cast<size_t>(prompt.ids().ids_size()))};
}

}  // namespace longshort::server
