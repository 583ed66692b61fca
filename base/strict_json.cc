#include "base/strict_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

using Event = nlohmann::json::parse_event_t;

// Thrown by Watcher to leave the parser, caught in ParseJsonObject.
struct Refusal {
  std::string reason;
};

// Receives every event of a parse, and rejects documents that the parser would accept.
class Watcher final {
 public:
  explicit Watcher(const JsonLimits& limits) : limits_(limits) {}

  void See(int depth, Event event, const nlohmann::json& parsed) {
    if (++elements_ > limits_.elements) throw Refusal{absl::StrFormat("more than %d elements", limits_.elements)};
    if (depth >= limits_.depth) throw Refusal{absl::StrFormat("nested deeper than %d", limits_.depth)};
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) throw Refusal{absl::StrFormat("duplicate key %s", QuoteForMessage(key))};
    }
  }

 private:
  const JsonLimits limits_;
  int64_t elements_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the open objects, outermost first
};

absl::StatusOr<nlohmann::json> Refuse(const std::string& name, std::string_view reason) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", name, reason));
}

std::string Listed(absl::Span<const std::string_view> names) {
  return absl::StrJoin(names, ", ", [](std::string* out, std::string_view name) { out->append(name); });
}

bool IsInteger(const nlohmann::json& value) {
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max();
  return value.is_number_integer() && !too_large;
}

bool IsFinite(const nlohmann::json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

}  // namespace

absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, const std::string& name,
                                               const JsonLimits& limits) {
  // The parser would ignore everything after a NUL.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Refuse(name, absl::StrFormat("not valid JSON: NUL at byte %d", nul));
  }
  try {
    Watcher watcher(limits);
    auto document = nlohmann::json::parse(text, [&watcher](int depth, Event event, const nlohmann::json& parsed) {
      watcher.See(depth, event, parsed);
      return true;
    });
    if (!document.is_object()) return Refuse(name, absl::StrFormat("a JSON %s, not an object", document.type_name()));
    return document;
  } catch (const Refusal& refusal) {
    return Refuse(name, refusal.reason);
  } catch (const nlohmann::json::parse_error& error) {
    return Refuse(name, absl::StrFormat("not valid JSON at byte %d (counted from 1)", error.byte));
  } catch (const std::exception& error) {
    return Refuse(name, absl::StrFormat("not readable as JSON: %s", QuoteForMessage(error.what())));
  }
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
