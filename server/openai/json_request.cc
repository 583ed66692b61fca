#include "server/openai/json_request.h"

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/rpc/message_size.h"

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

nlohmann::json* JsonRequest::Find(std::string_view field) {
  const auto found = document_.find(field);
  return found == document_.end() || found->is_null() ? nullptr : &*found;
}

absl::Status JsonRequest::Read(std::string_view field, bool& value) {
  const nlohmann::json* const found = Find(field);
  if (found == nullptr) return absl::OkStatus();
  if (!found->is_boolean()) return WrongJson(std::string(field), *found, "true or false");
  value = found->get<bool>();
  return absl::OkStatus();
}

absl::Status JsonRequest::Read(std::string_view field, int64_t& value) {
  const nlohmann::json* const found = Find(field);
  if (found == nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(value, IntegerOf(std::string(field), *found, "an integer"));
  return absl::OkStatus();
}

absl::Status JsonRequest::Read(std::string_view field, double& value) {
  const nlohmann::json* const found = Find(field);
  if (found == nullptr) return absl::OkStatus();
  if (!found->is_number()) return WrongJson(std::string(field), *found, "a number");
  value = found->get<double>();
  return absl::OkStatus();
}

absl::Status JsonRequest::Read(std::string_view field, std::string& value) {
  nlohmann::json* const found = Find(field);
  if (found == nullptr) return absl::OkStatus();
  return MoveText(std::string(field), *found, "a string", value);
}

absl::Status JsonRequest::MoveText(const std::string& name, nlohmann::json& text, const char* wanted, std::string& to) {
  if (!text.is_string()) return WrongJson(name, text, wanted);
  to = std::move(text.get_ref<std::string&>());
  document_bytes_ -= HeapBytesOfText(to.capacity());
  return meter_.Add(kStringBytes + kPartBytes);
}

absl::Status JsonRequest::ReadTokenIds(const std::string& name, const nlohmann::json& list,
                                       google::protobuf::RepeatedField<int32_t>& ids) {
  if (!list.is_array()) return WrongJson(name, list, "a list of token ids");
  LS_RETURN_IF_ERROR(
      meter_.Add(kPartBytes + HeapBytes(static_cast<int64_t>(sizeof(void*) + list.size() * sizeof(int32_t)))));
  ids.Reserve(static_cast<int>(list.size()));
  for (size_t i = 0; i < list.size(); ++i) {
    const std::optional<int64_t> id = WholeNumber(list[i]);
    const bool fits = id >= std::numeric_limits<int32_t>::min() && id <= std::numeric_limits<int32_t>::max();
    if (!fits) return WrongJson(absl::StrCat(name, "[", i, "]"), list[i], "a token id");
    ids.Add(static_cast<int32_t>(*id));
  }
  return absl::OkStatus();
}

absl::Status WrongJson(const std::string& field, const nlohmann::json& value, const std::string& wanted) {
  std::string shown;
  if (value.is_string()) {
    shown = Quoted(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    shown = value.empty() ? "empty" : value.is_array() ? "a list" : "an object";
  } else {
    shown = value.dump();
  }
  return FieldError(field, shown, wanted);
}

absl::StatusOr<int64_t> IntegerOf(const std::string& field, const nlohmann::json& value, const char* wanted) {
  const std::optional<int64_t> number = WholeNumber(value);
  return number.has_value() ? absl::StatusOr<int64_t>(*number) : WrongJson(field, value, wanted);
}

}  // namespace longshort::server
