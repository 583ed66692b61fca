#include "server/fronts/open_inference/parameters.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/text.h"
#include "nlohmann/json.hpp"
#include "server/calls/call_names.h"
#include "server/fronts/open_inference/open_inference.h"

namespace longshort::server {
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
      return NumberText(value.double_param());
    case InferParameter::kStringParam:
      return Quoted(value.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "unset";
}

// An integer of type Number, from any field that can hold it.
template <typename Number>
std::optional<Number> WholeOf(const InferParameter& value) {
  const auto in_range = [](auto given) {
    return std::in_range<Number>(given) ? std::optional(static_cast<Number>(given)) : std::nullopt;
  };
  const auto whole_of = [&in_range](double given) {
    const std::optional<int64_t> whole = IntegerOf(given);
    return whole.has_value() ? in_range(*whole) : std::nullopt;
  };
  Number number = 0;
  double fraction = 0;
  switch (value.parameter_choice_case()) {
    case InferParameter::kInt64Param:
      return in_range(value.int64_param());
    case InferParameter::kUint64Param:
      return in_range(value.uint64_param());
    case InferParameter::kDoubleParam:
      return whole_of(value.double_param());
    case InferParameter::kStringParam:
      if (absl::SimpleAtoi(value.string_param(), &number)) return number;
      return absl::SimpleAtod(value.string_param(), &fraction) ? whole_of(fraction) : std::nullopt;
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

constexpr char kStopType[] = R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})";

absl::StatusOr<std::vector<std::string>> ParseStopList(const std::string& text) {
  absl::Status wrong =
      FieldError("parameters.stop", Quoted(text),
                 "a stop string, or a JSON list of strings if it begins with [ (for the stop string [ use [\"[\"])");
  constexpr JsonLimits kLimits = {.depth = 2, .elements = 1024};
  // Wrapped into an object, because ParseJsonObject parses only objects.
  const absl::StatusOr<nlohmann::json> parsed = ParseJsonObject(absl::StrCat("{\"stop\":", text, "}"), "stop", kLimits);
  if (!parsed.ok() || parsed->size() != 1 || !parsed->at("stop").is_array()) return wrong;
  std::vector<std::string> strings;
  for (const nlohmann::json& one : parsed->at("stop")) {
    if (!one.is_string()) return wrong;
    strings.push_back(one.get<std::string>());
  }
  return strings;
}

absl::StatusOr<std::vector<std::string>> ReadStop(const Parameters& parameters) {
  LS_ASSIGN_OR_RETURN(const std::optional<std::string> given, parameters.Text("stop"));
  if (!given.has_value()) return std::vector<std::string>();
  const std::string& stop = given.value();
  if (!stop.empty() && stop.front() == '[') return ParseStopList(stop);
  return std::vector<std::string>{stop};
}

}  // namespace

template <typename Value>
absl::StatusOr<std::optional<Value>> Parameters::Read(const std::string& name, const std::string& wanted,
                                                      std::optional<Value> (*value_of)(const InferParameter&)) const {
  const auto found = map_.find(name);
  if (found == map_.end()) return std::nullopt;
  if (std::optional<Value> value = value_of(found->second); value.has_value()) return value;
  return FieldError(absl::StrCat(place_, ".", name), Shown(found->second), wanted);
}

absl::StatusOr<std::optional<int64_t>> Parameters::Integer(const std::string& name) const {
  return Read(name, "a whole number of 64 bits", WholeOf<int64_t>);
}

absl::StatusOr<std::optional<uint64_t>> Parameters::Unsigned(const std::string& name) const {
  return Read(name, "a whole number of 64 bits, at least 0", WholeOf<uint64_t>);
}

absl::StatusOr<std::optional<double>> Parameters::Number(const std::string& name) const {
  return Read(name, "a number", NumberOf);
}

absl::StatusOr<std::optional<bool>> Parameters::Boolean(const std::string& name) const {
  return Read(name, "true or false", BooleanOf);
}

absl::StatusOr<std::optional<std::string>> Parameters::Text(const std::string& name) const {
  return Read(name, "a string", TextOf);
}

absl::Status Parameters::RefuseUnknown(absl::Span<const SchemaField> known) const {
  for (const auto& [name, value] : map_) {
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&name = name](const SchemaField& one) { return one.name == name; });
    if (is_known || absl::StartsWith(name, "triton_")) continue;
    const auto append = [](std::string* names, const SchemaField& one) { names->append(one.name); };
    return FieldError(absl::StrCat("a name of ", place_), Quoted(name),
                      absl::StrCat("one of ", absl::StrJoin(known, ", ", append)));
  }
  return absl::OkStatus();
}

namespace {

using Target = std::variant<std::monostate, int64_t GenerateCall::*, int64_t core::SamplingOptions::*,
                            double core::SamplingOptions::*>;

struct GenerationParameter {
  SchemaField schema;
  Target target = {};  // of a number
};

const std::vector<GenerationParameter>& GenerationParameters() {
  using core::SamplingOptions;
  static const auto* const rows = new std::vector<GenerationParameter>{
      {{"max_tokens", "integer", "Tokens of a completion."}, &GenerateCall::max_tokens},
      {{"completions", "integer", "Completions of the prompt."}, &GenerateCall::completions},
      {{"echo", "boolean", "Whether the text begins with the prompt."}},
      {{"stop", kStopType, "Strings before which the text ends."}},
      {{"temperature", "number", "0 takes the likeliest token."}, &SamplingOptions::temperature},
      {{"top_k", "integer", "Samples from so many of the likeliest tokens."}, &SamplingOptions::top_k},
      {{"top_p", "number", "Samples from the likeliest tokens that together have this probability."},
       &SamplingOptions::top_p},
      {{"min_p", "number", "Samples from tokens with at least this part of the likeliest one's probability."},
       &SamplingOptions::min_p},
      {{"repetition_penalty", "number", "Divides the logits of tokens that occurred."},
       &SamplingOptions::repetition_penalty},
      {{"frequency_penalty", "number", "Taken from a token's logit each time that it occurred."},
       &SamplingOptions::frequency_penalty},
      {{"presence_penalty", "number", "Taken from the logits of tokens that occurred."},
       &SamplingOptions::presence_penalty},
      {{"seed", "integer", "The same seed gives the same text."}}};
  return *rows;
}

}  // namespace

const std::vector<SchemaField>& GenerationParameterFields() {
  static const auto* const fields = [] {
    auto* const schemas = new std::vector<SchemaField>;
    for (const GenerationParameter& row : GenerationParameters()) schemas->push_back(row.schema);
    return schemas;
  }();
  return *fields;
}

absl::StatusOr<GenerateCall> ReadGenerationParameters(const Parameters& parameters) {
  GenerateCall call;
  for (const auto& [schema, target] : GenerationParameters()) {
    const std::string name(schema.name);
    if (const auto* of_call = std::get_if<int64_t GenerateCall::*>(&target); of_call != nullptr) {
      LS_ASSIGN_OR_RETURN(const std::optional<int64_t> given, parameters.Integer(name));
      call.** of_call = given.value_or(call.**of_call);
    } else if (const auto* whole = std::get_if<int64_t core::SamplingOptions::*>(&target); whole != nullptr) {
      LS_ASSIGN_OR_RETURN(const std::optional<int64_t> given, parameters.Integer(name));
      call.sampling.** whole = given.value_or(call.sampling.**whole);
    } else if (const auto* number = std::get_if<double core::SamplingOptions::*>(&target); number != nullptr) {
      LS_ASSIGN_OR_RETURN(const std::optional<double> given, parameters.Number(name));
      call.sampling.** number = given.value_or(call.sampling.**number);
    }
  }
  LS_ASSIGN_OR_RETURN(call.seed, parameters.Unsigned("seed"));
  LS_ASSIGN_OR_RETURN(const std::optional<bool> echo, parameters.Boolean("echo"));
  call.echo = echo.value_or(false);
  LS_ASSIGN_OR_RETURN(call.stop, ReadStop(parameters));
  return call;
}

namespace {

// A field that is not a parameter of the same name.
struct OwnName {
  std::string_view field;
  const char* name = nullptr;
  const char* element = nullptr;  // the name of one element
};

constexpr OwnName kOwnNames[] = {
    {"model.name", "model_name"},
    {"model.version", "model_version"},
    {"inputs", "documents", kDocumentInput},
    {"input", kDocumentInput},
    {"second_inputs", "second documents", kSecondDocumentInput},
    {"second_input", kSecondDocumentInput},
    {"prompt", kPromptInput},
    {"images", "images", kImageInput},
    {"top_k", "parameters.classification"},
    {"all_logits", "logits"},
    {"top_alternatives", "0"},  // not available in this protocol
};

std::string NameOf(const FieldPath& path) {
  const auto* const own = std::find_if(std::begin(kOwnNames), std::end(kOwnNames),
                                       [&](const OwnName& one) { return one.field == path.field; });
  std::string name;
  if (own == std::end(kOwnNames)) {
    absl::StrAppend(&name, "parameters.", std::string(path.field.substr(path.field.rfind('.') + 1)));
  } else {
    name = path.index.has_value() && own->element != nullptr ? own->element : own->name;
  }
  if (path.index.has_value()) absl::StrAppend(&name, "[", *path.index, "]");
  if (path.id_index.has_value()) absl::StrAppend(&name, " (token ", *path.id_index, ")");
  return name;
}

}  // namespace

constexpr FieldVocabulary kOpenInferenceVocabulary = {.name_of = NameOf,
                                                      .text_kinds = "text or token ids",
                                                      .image_kinds = "the bytes of an image, or pixels",
                                                      .streaming_rpc = "ModelStreamInfer"};

}  // namespace longshort::server
