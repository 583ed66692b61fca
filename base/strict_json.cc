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
#include "base/status_macros.h"
#include "base/text.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"

namespace longshort {
namespace {

using nlohmann::json;

// A node of std::map has a color and three pointers beside its value.
constexpr int64_t kMemberBytes = HeapBytes(4 * sizeof(void*) + sizeof(json::object_t::value_type));

std::string Listed(absl::Span<const std::string_view> names) {
  return absl::StrJoin(names, ", ", [](std::string* out, std::string_view name) { out->append(name); });
}

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

struct JsonView::File {
  std::string name;
  json document;
};

absl::StatusOr<JsonView> JsonView::Parse(std::string_view text, const std::string& name, const JsonLimits& limits) {
  LS_ASSIGN_OR_RETURN(json document, ParseJsonObject(text, name, limits));
  const auto file = std::make_shared<File>(File{name, std::move(document)});
  return JsonView(file, &file->document, "");
}

bool JsonView::is_object() const { return value_ != nullptr && value_->is_object(); }
bool JsonView::is_list() const { return value_ != nullptr && value_->is_array(); }
bool JsonView::is_text() const { return value_ != nullptr && value_->is_string(); }

bool JsonView::Is(std::string_view text) const { return is_text() && value_->get_ref<const std::string&>() == text; }

size_t JsonView::size() const { return is_object() || is_list() ? value_->size() : 0; }

JsonView JsonView::At(std::string_view field) const {
  json* value = nullptr;
  if (is_object()) {
    const auto found = value_->find(field);
    const bool is_null = found != value_->end() && found->is_null();
    if (found != value_->end() && !(is_null && file_ == nullptr)) value = &*found;
  }
  constexpr size_t kShown = 64;  // of a key that the client chose
  const std::string_view name = field.substr(0, kShown);
  return {file_, value, path_.empty() ? std::string(name) : absl::StrFormat("%s.%s", path_, name)};
}

JsonView JsonView::At(size_t index) const {
  return {file_, &(*value_)[index], absl::StrFormat("%s[%d]", path_, index)};
}

absl::Status JsonView::RefuseUnknown(absl::Span<const std::string_view> known) const {
  if (!is_object()) return Wrong("an object");
  for (const auto& [field, value] : value_->items()) {
    const bool is_absent = value.is_null() && file_ == nullptr;
    if (is_absent || std::find(known.begin(), known.end(), field) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%sunknown field %s%s%s; the fields are %s", file_ == nullptr ? "" : file_->name + ": ",
        file_ == nullptr ? Quoted(field) : QuoteForMessage(field), path_.empty() ? "" : " of ", path_, Listed(known)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> JsonView::Boolean() const {
  if (is_absent() || !value_->is_boolean()) return Wrong("true or false");
  return value_->get<bool>();
}

absl::StatusOr<int64_t> JsonView::Integer() const {
  const std::optional<int64_t> whole = is_absent() ? std::nullopt : WholeNumber(*value_);
  return whole.has_value() ? absl::StatusOr<int64_t>(*whole) : Wrong("an integer");
}

absl::StatusOr<double> JsonView::Number() const {
  if (is_absent() || !value_->is_number()) return Wrong("a number");
  return value_->get<double>();
}

absl::StatusOr<std::string_view> JsonView::Text() const {
  if (!is_text()) return Wrong("a string");
  return std::string_view(value_->get_ref<const std::string&>());
}

absl::Status JsonView::Wrong(std::string_view wanted) const {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s%s is %s; it must be %s", file_ == nullptr ? "" : file_->name + ": ", path_, Shown(), wanted));
}

// Strings are quoted as elsewhere in messages about files, and about requests.
std::string JsonView::Shown() const {
  if (is_absent()) return "missing";
  if (is_text()) {
    const auto& text = value_->get_ref<const std::string&>();
    return file_ == nullptr ? Quoted(text) : QuoteForMessage(text);
  }
  // A whole number beyond 64 bits came as digits.
  constexpr double kBeyond64Bits = 18446744073709551616.0, kLongest = 1e40;
  if (value_->is_number_float()) {
    const auto number = value_->get<double>();
    const double size = std::abs(number);
    if (size >= kBeyond64Bits && size < kLongest) return absl::StrFormat("%.0f", number);
  }
  if (!value_->is_structured()) return value_->dump();
  if (value_->empty()) return "empty";
  constexpr size_t kShownNumbers = 8;
  const bool is_short = value_->is_array() && value_->size() <= kShownNumbers &&
                        std::all_of(value_->begin(), value_->end(), [](const json& one) { return one.is_number(); });
  if (is_short) return value_->dump();
  return value_->is_array() ? "a list" : "an object";
}

absl::StatusOr<std::string> JsonView::Text(std::string_view field) const {
  LS_ASSIGN_OR_RETURN(const std::string_view text, At(field).Text());
  return std::string(text);
}

template <typename Value>
absl::StatusOr<std::vector<Value>> JsonView::List(std::string_view field, std::string_view wanted,
                                                  absl::StatusOr<Value> (JsonView::*read)() const) const {
  const JsonView list = At(field);
  if (!list.is_list()) return list.Wrong(wanted);
  std::vector<Value> values;
  values.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const absl::StatusOr<Value> value = (list.At(i).*read)();
    if (!value.ok()) return list.Wrong(wanted);
    values.push_back(*value);
  }
  return values;
}

absl::StatusOr<std::vector<int64_t>> JsonView::Integers(std::string_view field) const {
  return List(field, "a list of integers", &JsonView::Integer);
}

absl::StatusOr<std::vector<double>> JsonView::Numbers(std::string_view field) const {
  return List(field, "a list of numbers", &JsonView::Number);
}

absl::StatusOr<JsonView> JsonView::Object(std::string_view field) const {
  JsonView object = At(field);
  if (!object.is_object()) return object.Wrong("an object");
  return object;
}

absl::StatusOr<size_t> JsonView::Choice(std::string_view field, absl::Span<const std::string_view> choices) const {
  const JsonView text = At(field);
  const auto found =
      text.is_text() ? std::find(choices.begin(), choices.end(), text.value().get_ref<std::string&>()) : choices.end();
  if (found == choices.end()) return text.Wrong(absl::StrFormat("one of %s", Listed(choices)));
  return static_cast<size_t>(found - choices.begin());
}

}  // namespace longshort
