#include "server/open_inference_v2/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/calls/field_error.h"

namespace longshort {
namespace {

using inference::InferParameter;

std::string Shown(const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return value.bool_param() ? "true" : "false";
    case InferParameter::kInt64Param:
      return absl::StrCat(value.int64_param());
    case InferParameter::kUint64Param:
      return absl::StrCat(value.uint64_param());
    case InferParameter::kDoubleParam:
      return absl::StrCat(value.double_param());
    case InferParameter::kStringParam:
      return Quoted(value.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "unset";
}

std::optional<int64_t> IntegerOf(const InferParameter& value) {
  int64_t number = 0;
  switch (value.parameter_choice_case()) {
    case InferParameter::kInt64Param:
      return value.int64_param();
    case InferParameter::kUint64Param:
      if (value.uint64_param() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value.uint64_param());
    case InferParameter::kStringParam:
      if (absl::SimpleAtoi(value.string_param(), &number)) return number;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> UnsignedOf(const InferParameter& value) {
  uint64_t number = 0;
  switch (value.parameter_choice_case()) {
    case InferParameter::kInt64Param:
      if (value.int64_param() < 0) return std::nullopt;
      return static_cast<uint64_t>(value.int64_param());
    case InferParameter::kUint64Param:
      return value.uint64_param();
    case InferParameter::kStringParam:
      if (absl::SimpleAtoi(value.string_param(), &number)) return number;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<double> NumberOf(const InferParameter& value) {
  double number = 0;
  switch (value.parameter_choice_case()) {
    case InferParameter::kDoubleParam:
      return value.double_param();
    case InferParameter::kInt64Param:
      return static_cast<double>(value.int64_param());
    case InferParameter::kUint64Param:
      return static_cast<double>(value.uint64_param());
    case InferParameter::kStringParam:
      if (absl::SimpleAtod(value.string_param(), &number)) return number;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<bool> BooleanOf(const InferParameter& value) {
  if (value.parameter_choice_case() == InferParameter::kBoolParam) return value.bool_param();
  if (value.parameter_choice_case() != InferParameter::kStringParam) return std::nullopt;
  if (value.string_param() == "true") return true;
  if (value.string_param() == "false") return false;
  return std::nullopt;
}

std::optional<std::string> TextOf(const InferParameter& value) {
  if (value.parameter_choice_case() != InferParameter::kStringParam) return std::nullopt;
  return value.string_param();
}

}  // namespace

const InferParameter* Parameters::Find(const std::string& name) const {
  const auto found = map_.find(name);
  return found == map_.end() ? nullptr : &found->second;
}

absl::Status Parameters::Wrong(const std::string& name, const InferParameter& value, const std::string& wanted) const {
  return FieldError(absl::StrCat(place_, ".", name), Shown(value), wanted);
}

absl::StatusOr<std::optional<int64_t>> Parameters::Integer(const std::string& name) const {
  const InferParameter* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto number = IntegerOf(*value); number.has_value()) return number;
  return Wrong(name, *value, "a whole number of 64 bits");
}

absl::StatusOr<std::optional<uint64_t>> Parameters::Unsigned(const std::string& name) const {
  const InferParameter* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto number = UnsignedOf(*value); number.has_value()) return number;
  return Wrong(name, *value, "a whole number of 64 bits, at least 0");
}

absl::StatusOr<std::optional<double>> Parameters::Number(const std::string& name) const {
  const InferParameter* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto number = NumberOf(*value); number.has_value()) return number;
  return Wrong(name, *value, "a number");
}

absl::StatusOr<std::optional<bool>> Parameters::Boolean(const std::string& name) const {
  const InferParameter* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto choice = BooleanOf(*value); choice.has_value()) return choice;
  return Wrong(name, *value, "true or false");
}

absl::StatusOr<std::optional<std::string>> Parameters::Text(const std::string& name) const {
  const InferParameter* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (auto text = TextOf(*value); text.has_value()) return text;
  return Wrong(name, *value, "a string");
}

absl::Status Parameters::RefuseUnknown(absl::Span<const std::string_view> known) const {
  for (const auto& [name, value] : map_) {
    if (absl::StartsWith(name, "triton_") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::vector<absl::string_view> names;
    for (const std::string_view one : known) names.emplace_back(one.data(), one.size());
    return FieldError(absl::StrCat("a name of ", place_), Quoted(name),
                      absl::StrCat("one of ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace longshort
