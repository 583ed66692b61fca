#include "server/fronts/openai/json_request.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/call/message_size.h"

namespace longshort::server {

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
  return meter_.Add(kStringBytes + kPartBytes);
}

absl::Status JsonRequest::ReadTokenIds(const JsonView& list, google::protobuf::RepeatedField<int32_t>& ids) {
  if (!list.is_list()) return list.Wrong("a list of token ids");
  LS_RETURN_IF_ERROR(
      meter_.Add(kPartBytes + HeapBytes(static_cast<int64_t>(sizeof(void*) + list.size() * sizeof(int32_t)))));
  ids.Reserve(static_cast<int>(list.size()));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int64_t> id = WholeNumber(list.value()[i]);
    const bool fits = id >= std::numeric_limits<int32_t>::min() && id <= std::numeric_limits<int32_t>::max();
    if (!fits) return list.At(i).Wrong("a token id");
    ids.Add(static_cast<int32_t>(*id));
  }
  return absl::OkStatus();
}

absl::Status JsonRequest::ReadPrompts(const JsonView& value,
                                      google::protobuf::RepeatedPtrField<openai::Prompt>& prompts) {
  constexpr char kForms[] = "a string, a list of strings, a list of token ids, or a list of such lists";
  LS_RETURN_IF_ERROR(CountPart());
  if (value.is_text()) return MoveText(value, kForms, *prompts.Add()->mutable_text());
  if (!value.is_list() || value.size() == 0) return value.Wrong(kForms);
  const JsonView first = value.At(0);
  if (first.value().is_number()) {
    return ReadTokenIds(value, *prompts.Add()->mutable_ids()->mutable_ids());
  }
  const std::string as_first = absl::StrCat(", as the first ", value.path());
  for (size_t i = 0; i < value.size(); ++i) {
    const JsonView one = value.At(i);
    LS_RETURN_IF_ERROR(CountPart());
    if (first.is_text()) {
      LS_RETURN_IF_ERROR(MoveText(one, "a string" + as_first, *prompts.Add()->mutable_text()));
    } else if (!first.is_list()) {
      return one.Wrong("a string, a token id, or a list of token ids");
    } else if (!one.is_list()) {
      return one.Wrong("a list of token ids" + as_first);
    } else {
      LS_RETURN_IF_ERROR(ReadTokenIds(one, *prompts.Add()->mutable_ids()->mutable_ids()));
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
