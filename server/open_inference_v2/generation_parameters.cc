#include "server/open_inference_v2/generation_parameters.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "server/calls/field_error.h"

namespace longshort {
namespace {

constexpr std::string_view kNames[] = {"max_tokens",
                                       "completions",
                                       "echo",
                                       "stop",
                                       "temperature",
                                       "top_k",
                                       "top_p",
                                       "min_p",
                                       "repetition_penalty",
                                       "frequency_penalty",
                                       "presence_penalty",
                                       "seed"};

absl::Status ReadInteger(const Parameters& parameters, const char* name, int64_t* value) {
  LS_ASSIGN_OR_RETURN(const std::optional<int64_t> given, parameters.Integer(name));
  if (given.has_value()) *value = *given;
  return absl::OkStatus();
}

absl::Status ReadNumber(const Parameters& parameters, const char* name, double* value) {
  LS_ASSIGN_OR_RETURN(const std::optional<double> given, parameters.Number(name));
  if (given.has_value()) *value = *given;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ParseStopList(const std::string& text) {
  const absl::Status wrong =
      FieldError("parameters.stop", Quoted(text),
                 "a stop string, or, beginning with [, a JSON list of strings: one that begins so is [\"[\"]");
  // Behind a key, because strict JSON is an object.
  const absl::StatusOr<nlohmann::json> parsed = ParseJsonObject(absl::StrCat("{\"stop\":", text, "}"), "stop");
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

absl::Span<const std::string_view> GenerationParameterNames() { return kNames; }

absl::StatusOr<GenerateCall> ReadGenerationParameters(const Parameters& parameters) {
  GenerateCall call;
  SamplingOptions& sampling = call.sampling;
  LS_RETURN_IF_ERROR(ReadInteger(parameters, "max_tokens", &call.max_tokens));
  LS_RETURN_IF_ERROR(ReadInteger(parameters, "completions", &call.completions));
  LS_RETURN_IF_ERROR(ReadInteger(parameters, "top_k", &sampling.top_k));
  LS_RETURN_IF_ERROR(ReadNumber(parameters, "temperature", &sampling.temperature));
  LS_RETURN_IF_ERROR(ReadNumber(parameters, "top_p", &sampling.top_p));
  LS_RETURN_IF_ERROR(ReadNumber(parameters, "min_p", &sampling.min_p));
  LS_RETURN_IF_ERROR(ReadNumber(parameters, "repetition_penalty", &sampling.repetition_penalty));
  LS_RETURN_IF_ERROR(ReadNumber(parameters, "frequency_penalty", &sampling.frequency_penalty));
  LS_RETURN_IF_ERROR(ReadNumber(parameters, "presence_penalty", &sampling.presence_penalty));
  LS_ASSIGN_OR_RETURN(call.seed, parameters.Unsigned("seed"));
  LS_ASSIGN_OR_RETURN(const std::optional<bool> echo, parameters.Boolean("echo"));
  call.echo = echo.value_or(false);
  LS_ASSIGN_OR_RETURN(call.stop, ReadStop(parameters));
  return call;
}

}  // namespace longshort
