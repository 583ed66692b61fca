#include "base/strict_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/number_text.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

using nlohmann::json;

// A node of std::map has a color and three pointers beside its value.
constexpr int64_t kMemberBytes = HeapBytes(4 * sizeof(void*) + sizeof(json::object_t::value_type));

std::string Listed(absl::Span<const std::string_view> names) {
  return absl::StrJoin(names, ", ", [](std::string* out, std::string_view name) { out->append(name); });
}

bool IsInteger(const nlohmann::json& value) {
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max();
  return value.is_number_integer() && !too_large;
}

bool IsFinite(const nlohmann::json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

}  // namespace

void FreeJson(json& document) {
  if (auto* const array = document.get_ptr<json::array_t*>(); array != nullptr) {
    for (json& one : *array) FreeJson(one);
    json::array_t().swap(*array);
  } else if (auto* const object = document.get_ptr<json::object_t*>(); object != nullptr) {
    for (auto& [key, one] : *object) FreeJson(one);
    object->clear();
  }
}

JsonBuilder::JsonBuilder(std::string_view text, std::string name, const JsonLimits& limits, MemoryMeter& meter)
    : JsonScanner(text, meter), name_(std::move(name)), limits_(limits) {}

absl::Status JsonBuilder::Refuse(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", name_, what));
}

absl::Status JsonBuilder::Wrong(std::string_view what) const {
  return Refuse(absl::StrFormat("not valid JSON at byte %d (counted from 1): %s", place(), what));
}

absl::Status JsonBuilder::Build(json& document) {
  TakeWord("\xEF\xBB\xBF");  // a byte order mark
  LS_RETURN_IF_ERROR(ReadValue(document));
  if (!AtEnd()) return Wrong("something follows the value");
  return document.is_object() ? absl::OkStatus()
                              : Refuse(absl::StrFormat("a JSON %s, not an object", document.type_name()));
}

absl::Status JsonBuilder::Count(bool is_part) {
  if (++elements_ > limits_.elements) return Refuse(absl::StrFormat("more than %d elements", limits_.elements));
  if (is_part && ++parts_ > limits_.parts) {
    return Refuse(absl::StrFormat("more than %d strings, lists, objects and keys", limits_.parts));
  }
  return absl::OkStatus();
}

absl::Status JsonBuilder::CheckLength(int64_t elements, int64_t numbers) const {
  if (list_ == nullptr || (elements <= list_->elements && numbers <= list_->numbers)) return absl::OkStatus();
  const bool has_numbers = numbers > list_->numbers;
  return Refuse(absl::StrFormat("%s has more than %d %s", list_->key, has_numbers ? list_->numbers : list_->elements,
                                has_numbers ? "numbers" : "elements"));
}

absl::Status JsonBuilder::ReadValue(json& value) {
  const bool is_object = NextIs('{'), is_array = NextIs('['), is_text = NextIs('"');
  LS_RETURN_IF_ERROR(Count(is_object || is_array || is_text));
  if (is_object) return ReadObject(value);
  if (is_array) return ReadArray(value);
  if (is_text) return ReadText(value);
  if (TakeWord("null")) return value = nullptr, absl::OkStatus();
  if (TakeWord("true")) return value = true, absl::OkStatus();
  if (TakeWord("false")) return value = false, absl::OkStatus();
  JsonNumber number;
  LS_RETURN_IF_ERROR(ReadNumber(number));
  std::visit([&value](auto known) { value = known; }, number);
  return absl::OkStatus();
}

absl::Status JsonBuilder::ReadText(json& value) {
  std::string text;
  LS_RETURN_IF_ERROR(ReadString(text));
  LS_RETURN_IF_ERROR(meter_.Add(HeapBytes(sizeof(text))));
  value = std::move(text);
  return absl::OkStatus();
}

absl::Status JsonBuilder::Open(json& value, json empty, int64_t bytes) {
  if (std::ssize(open_) == limits_.depth) return Refuse(absl::StrFormat("nested deeper than %d", limits_.depth));
  LS_RETURN_IF_ERROR(meter_.Add(HeapBytes(bytes)));
  LS_RETURN_IF_ERROR(meter_.MakeRoom(open_, 1));
  value = std::move(empty);
  open_.push_back(&value);
  return absl::OkStatus();
}

absl::Status JsonBuilder::ReadArray(json& value) {
  LS_RETURN_IF_ERROR(Open(value, json::array(), sizeof(json::array_t)));
  auto& array = value.get_ref<json::array_t&>();
  int64_t numbers = 0;
  Take('[');
  if (!Take(']')) {
    do {
      LS_RETURN_IF_ERROR(meter_.MakeRoom(array, 1));
      if (NextIsNumber()) ++numbers;
      LS_RETURN_IF_ERROR(CheckLength(std::ssize(array) + 1 - numbers, numbers));
      LS_RETURN_IF_ERROR(ReadValue(array.emplace_back()));
    } while (Take(','));
    if (!Take(']')) return WrongKind("a comma or the end of the list");
  }
  open_.pop_back();
  return absl::OkStatus();
}

absl::Status JsonBuilder::ReadObject(json& value) {
  LS_RETURN_IF_ERROR(Open(value, json::object(), sizeof(json::object_t)));
  auto& object = value.get_ref<json::object_t&>();
  Take('{');
  if (!Take('}')) {
    do {
      if (!NextIs('"')) return WrongKind("a key");
      LS_RETURN_IF_ERROR(Count(true));
      LS_RETURN_IF_ERROR(CheckLength(std::ssize(object) + 1, 0));
      std::string key;
      LS_RETURN_IF_ERROR(ReadString(key));
      if (!Take(':')) return WrongKind("a colon");
      LS_RETURN_IF_ERROR(meter_.Add(kMemberBytes));
      const auto [member, is_new] = object.try_emplace(std::move(key));
      if (!is_new) return Refuse(absl::StrFormat("duplicate key %s", QuoteForMessage(member->first)));
      const JsonListLimit* const outer = list_;
      for (const JsonListLimit& limit : limits_.lists) list_ = limit.key == member->first ? &limit : list_;
      LS_RETURN_IF_ERROR(ReadMember(member->first, member->second));
      list_ = outer;
    } while (Take(','));
    if (!Take('}')) return WrongKind("a comma or the end of the object");
  }
  open_.pop_back();
  return absl::OkStatus();
}

absl::StatusOr<json> ParseJsonObject(std::string_view text, const std::string& name, const JsonLimits& limits,
                                     MemoryMeter* meter) {
  MemoryMeter none;
  json document;
  absl::Status built = JsonBuilder(text, name, limits, meter == nullptr ? none : *meter).Build(document);
  if (built.ok()) return document;
  FreeJson(document);
  return built;
}

std::optional<int64_t> WholeNumber(const json& value) {
  if (value.is_number_float()) return IntegerOf(value.get<double>());
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max();
  if (!value.is_number_integer() || too_large) return std::nullopt;
  return value.get<int64_t>();
}

std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string QuoteForMessage(std::string_view text) {
  constexpr size_t kLongest = 100;
  if (text.size() <= kLongest) return absl::StrFormat("'%s'", absl::CHexEscape(std::string(text)));
  return absl::StrFormat("'%s' (cut, %d bytes)", absl::CHexEscape(std::string(text.substr(0, kLongest))), text.size());
}

absl::StatusOr<JsonFields> JsonFields::Parse(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(nlohmann::json document, ParseJsonObject(text, name));
  return JsonFields(std::move(document), name);
}

absl::Status JsonFields::RefuseUnknown(absl::Span<const std::string_view> known) const {
  for (const auto& [field, value] : document_.items()) {
    if (std::find(known.begin(), known.end(), field) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: unknown field %s; the fields are %s", name_, QuoteForMessage(field), Listed(known)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> JsonFields::Integer(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!IsInteger(*value)) return Wrong(field, *value, "a 64-bit integer");
  return value->get<int64_t>();
}

absl::StatusOr<bool> JsonFields::Boolean(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!value->is_boolean()) return Wrong(field, *value, "true or false");
  return value->get<bool>();
}

absl::StatusOr<double> JsonFields::Number(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!IsFinite(*value)) return Wrong(field, *value, "a finite number");
  return value->get<double>();
}

absl::StatusOr<std::string> JsonFields::Text(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!value->is_string()) return Wrong(field, *value, "a string");
  return value->get<std::string>();
}

absl::StatusOr<std::vector<int64_t>> JsonFields::Integers(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), IsInteger))
    return Wrong(field, *value, "a list of 64-bit integers");
  return value->get<std::vector<int64_t>>();
}

absl::StatusOr<std::vector<double>> JsonFields::Numbers(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), IsFinite))
    return Wrong(field, *value, "a list of finite numbers");
  return value->get<std::vector<double>>();
}

absl::StatusOr<JsonFields> JsonFields::Object(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  if (!value->is_object()) return Wrong(field, *value, "an object");
  return JsonFields(*value, absl::StrFormat("%s: %s", name_, field));
}

absl::StatusOr<size_t> JsonFields::Choice(std::string_view field, absl::Span<const std::string_view> choices) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  const auto found = value->is_string()
                         ? std::find(choices.begin(), choices.end(), value->get_ref<const std::string&>())
                         : choices.end();
  if (found == choices.end()) return Wrong(field, *value, absl::StrFormat("one of %s", Listed(choices)));
  return static_cast<size_t>(found - choices.begin());
}

absl::Status JsonFields::OutOfRange(std::string_view field, std::string_view wanted) const {
  LS_ASSIGN_OR_RETURN(const nlohmann::json* value, Find(field));
  return Wrong(field, *value, wanted);
}

absl::StatusOr<const nlohmann::json*> JsonFields::Find(std::string_view field) const {
  const auto found = document_.find(field);
  if (found == document_.end())
    return absl::InvalidArgumentError(absl::StrFormat("%s: field '%s' is missing", name_, field));
  return &*found;
}

absl::Status JsonFields::Wrong(std::string_view field, const nlohmann::json& value, std::string_view wanted) const {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s is %s; it must be %s", name_, field, QuoteForMessage(value.dump()), wanted));
}

}  // namespace longshort
