#include "server/openai/completions_request.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/calls/field_error.h"
#include "server/openai/fields.h"
#include "server/openai/json_request.h"
#include "server/openai/prompts.h"

namespace longshort::server {
namespace {

absl::Status RefuseForeign(JsonRequest& json) {
  for (const auto& [field, why, neutral] : kRefusedFields) {
    const nlohmann::json* const found = json.Find(field);
    if (found == nullptr) continue;
    const auto values = nlohmann::json::parse(neutral);
    if (std::find(values.begin(), values.end(), *found) == values.end())
      return absl::InvalidArgumentError(absl::StrCat(std::string(field), " is not supported: ", why));
  }
  return absl::OkStatus();
}

absl::Status ReadStop(JsonRequest& json, openai::CompletionsRequest& request) {
  nlohmann::json* const found = json.Find("stop");
  if (found == nullptr) return absl::OkStatus();
  constexpr char kForms[] = "a string or a list of strings";
  if (!found->is_array()) return json.MoveText("stop", *found, kForms, *request.add_stop());
  for (size_t i = 0; i < found->size(); ++i) {
    LS_RETURN_IF_ERROR(json.MoveText(absl::StrCat("stop[", i, "]"), (*found)[i], "a string", *request.add_stop()));
  }
  return absl::OkStatus();
}

absl::Status ReadLogitBias(JsonRequest& json, openai::CompletionsRequest& request) {
  const nlohmann::json* const found = json.Find("logit_bias");
  if (found == nullptr) return absl::OkStatus();
  if (!found->is_object()) return WrongJson("logit_bias", *found, "an object of numbers by token id");
  for (const auto& [key, bias] : found->items()) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(key, &token) || absl::StrCat(token) != key) {
      return FieldError("a key of logit_bias", Quoted(key), "a token id");
    }
    if (!bias.is_number()) return WrongJson(absl::StrCat("logit_bias[", Quoted(key), "]"), bias, "a number");
    LS_RETURN_IF_ERROR(json.CountPart());
    (*request.mutable_logit_bias())[token] = bias.get<float>();
  }
  return absl::OkStatus();
}

absl::Status ReadSeed(JsonRequest& json, openai::CompletionsRequest& request) {
  const nlohmann::json* const found = json.Find("seed");
  if (found == nullptr) return absl::OkStatus();
  if (found->is_number_unsigned()) return request.set_seed(found->get<uint64_t>()), absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const int64_t seed, IntegerOf("seed", *found, "an integer of at most 64 bits"));
  request.set_seed(static_cast<uint64_t>(seed));
  return absl::OkStatus();
}

absl::Status ReadStreamOptions(JsonRequest& json, openai::CompletionsRequest& request) {
  const nlohmann::json* const options = json.Find("stream_options");
  if (options == nullptr) return absl::OkStatus();
  if (!options->is_object()) return WrongJson("stream_options", *options, "an object");
  if (!request.stream()) return absl::InvalidArgumentError("stream_options is set; it must be unset without `stream`");
  const auto found = options->find("include_usage");
  if (found == options->end() || found->is_null()) return absl::OkStatus();
  if (!found->is_boolean()) return WrongJson("stream_options.include_usage", *found, "true or false");
  request.set_include_usage(found->get<bool>());
  return absl::OkStatus();
}

// Completions are not ranked.
absl::Status CheckBestOf(JsonRequest& json, int64_t n) {
  int64_t best_of = n;
  LS_RETURN_IF_ERROR(json.Read("best_of", best_of));
  if (best_of == n) return absl::OkStatus();
  return FieldError("best_of", best_of, absl::StrCat(n, ", as n: every completion is returned"));
}

// Fields with one number, one flag or one text.
absl::Status ReadPlainFields(JsonRequest& json, openai::CompletionsRequest& request) {
  constexpr int64_t kDefaultMaxTokens = 16, kAllTokens = -1;  // as vLLM's top_k
  int64_t max_tokens = kDefaultMaxTokens, n = 1, logprobs = -1, top_k = 0, kept_tokens = 0;
  double temperature = 1, top_p = 1, min_p = 0, frequency_penalty = 0, presence_penalty = 0, repetition_penalty = 1;
  bool echo = false, stream = false;
  LS_RETURN_IF_ERROR(json.Read("model", *request.mutable_model()));
  LS_RETURN_IF_ERROR(json.Read("max_tokens", max_tokens));
  LS_RETURN_IF_ERROR(json.Read("n", n));
  LS_RETURN_IF_ERROR(json.Read("temperature", temperature));
  LS_RETURN_IF_ERROR(json.Read("top_p", top_p));
  LS_RETURN_IF_ERROR(json.Read("top_k", top_k));
  LS_RETURN_IF_ERROR(json.Read("min_p", min_p));
  LS_RETURN_IF_ERROR(json.Read("repetition_penalty", repetition_penalty));
  LS_RETURN_IF_ERROR(json.Read("frequency_penalty", frequency_penalty));
  LS_RETURN_IF_ERROR(json.Read("presence_penalty", presence_penalty));
  LS_RETURN_IF_ERROR(json.Read("echo", echo));
  LS_RETURN_IF_ERROR(json.Read("stream", stream));
  LS_RETURN_IF_ERROR(json.Read("truncate_prompt_tokens", kept_tokens));
  if (json.Find("logprobs") != nullptr) {
    LS_RETURN_IF_ERROR(json.Read("logprobs", logprobs));
    request.set_logprobs(logprobs);
  }
  if (n < 1) return FieldError("n", n, "at least 1");
  if (max_tokens < 0) return FieldError("max_tokens", max_tokens, "at least 0");
  if (max_tokens == 0 && !echo) return FieldError("max_tokens", max_tokens, "at least 1 without echo");
  if (max_tokens == 0 && n > 1) return FieldError("n", n, "1 if max_tokens is 0");
  if (json.Find("truncate_prompt_tokens") != nullptr && kept_tokens < 1) {
    return FieldError("truncate_prompt_tokens", kept_tokens, "at least 1");
  }
  request.set_kept_tokens(kept_tokens);
  request.set_max_tokens(max_tokens);
  request.set_n(n);
  request.set_temperature(temperature);
  request.set_top_p(top_p);
  request.set_top_k(top_k == kAllTokens ? 0 : top_k);
  request.set_min_p(min_p);
  request.set_repetition_penalty(repetition_penalty);
  request.set_frequency_penalty(frequency_penalty);
  request.set_presence_penalty(presence_penalty);
  request.set_echo(echo);
  request.set_stream(stream);
  return CheckBestOf(json, n);
}

}  // namespace

absl::Status ReadCompletionsRequest(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                                    openai::CompletionsRequest& request) {
  const JsonListLimit lists[] = {LimitOfTexts("prompt", limits.inputs, limits),
                                 {.key = "stop", .elements = limits.stop_strings},
                                 {.key = "logit_bias", .elements = limits.logit_biases}};
  JsonRequest json(meter, lists);
  LS_RETURN_IF_ERROR(json.Parse(body));
  LS_RETURN_IF_ERROR(RefuseForeign(json));
  LS_RETURN_IF_ERROR(ReadPlainFields(json, request));
  LS_RETURN_IF_ERROR(ReadPrompts(json, "prompt", *request.mutable_prompts()));
  LS_RETURN_IF_ERROR(ReadStop(json, request));
  LS_RETURN_IF_ERROR(ReadLogitBias(json, request));
  LS_RETURN_IF_ERROR(ReadSeed(json, request));
  return ReadStreamOptions(json, request);
}

}  // namespace longshort::server
