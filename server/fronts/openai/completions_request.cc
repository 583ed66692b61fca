#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/calls/call_names.h"
#include "server/fronts/openai/openai.h"

namespace longshort::server {
namespace {

using CompletionsField = RequestField<CompletionsRequest>;
using core::SamplingOptions;

constexpr char kNoTools[] = "the models have no tools";
constexpr char kNoForm[] = "the models have no answer format; `stop` and `logit_bias` guide the text";
constexpr char kNoBeams[] = "the server samples, and searches no beams";
constexpr char kNoSampler[] =
    "the server samples by `temperature`, `top_k`, `top_p`, `min_p` and three penalties: `repetition_penalty`, "
    "`frequency_penalty`, `presence_penalty`";
constexpr char kMaxTokens[] = "send `max_tokens`";
constexpr char kTokensAreText[] = "tokens are returned as text";
constexpr char kNoMinimum[] = "a completion ends at `max_tokens` or a string of `stop`; send fewer of these";

absl::Status ReadStop(JsonRequest& json, const JsonView& value, CompletionsRequest& request) {
  std::vector<std::string>& stop = request.call.stop;
  if (value.is_absent()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(json.MakeRoom(stop, value.is_list() ? value.size() : 1));
  if (!value.is_list()) return json.MoveText(value, "a string or a list of strings", stop.emplace_back());
  for (size_t i = 0; i < value.size(); ++i) {
    LS_RETURN_IF_ERROR(json.MoveText(value.At(i), "a string", stop.emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status ReadLogitBias(JsonRequest& json, const JsonView& value, CompletionsRequest& request) {
  if (value.is_absent()) return absl::OkStatus();
  if (!value.is_object()) return value.Wrong("an object of numbers by token id");
  auto& biases = request.call.sampling.logit_bias;
  LS_RETURN_IF_ERROR(json.MakeRoom(biases, value.size()));
  for (const auto& [key, bias] : value.value().items()) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(key, &token) || absl::StrCat(token) != key) {
      return FieldError("a key of logit_bias", Quoted(key), "a token id");
    }
    if (!bias.is_number()) return value.At(key).Wrong("a number");
    biases.emplace_back(token, bias.get<float>());
  }
  return absl::OkStatus();
}

absl::Status ReadLogprobs(JsonRequest& /*json*/, const JsonView& value, CompletionsRequest& request) {
  request.call.token_log_probabilities = !value.is_absent();
  if (value.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(request.call.top_alternatives, value.Integer());
  return absl::OkStatus();
}

absl::Status ReadSeed(JsonRequest& /*json*/, const JsonView& value, CompletionsRequest& request) {
  if (value.is_absent()) return absl::OkStatus();
  if (value.value().is_number_unsigned()) return request.call.seed = value.value().get<uint64_t>(), absl::OkStatus();
  const absl::StatusOr<int64_t> seed = value.Integer();
  if (!seed.ok()) return value.Wrong("an integer of at most 64 bits");
  request.call.seed = static_cast<uint64_t>(*seed);
  return absl::OkStatus();
}

absl::Status ReadStreamOptions(JsonRequest& /*json*/, const JsonView& value, CompletionsRequest& request) {
  if (value.is_absent()) return absl::OkStatus();
  if (!value.is_object()) return value.Wrong("an object");
  if (!request.stream) return absl::InvalidArgumentError("stream_options is set; it must be unset without `stream`");
  if (!value.Has("include_usage")) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(request.include_usage, value.Boolean("include_usage"));
  return absl::OkStatus();
}

absl::Status ReadTopK(JsonRequest& /*json*/, const JsonView& value, CompletionsRequest& request) {
  constexpr int64_t kAllTokens = -1;  // as vLLM's
  if (value.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const int64_t top_k, value.Integer());
  request.call.sampling.top_k = top_k == kAllTokens ? 0 : top_k;
  return absl::OkStatus();
}

absl::Status ReadKeptTokens(JsonRequest& /*json*/, const JsonView& value, CompletionsRequest& request) {
  if (value.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const int64_t tokens, value.Integer());
  if (tokens < 1 && tokens != kMostTokens) return value.Wrong("at least 1, or -1 for as many as the server takes");
  request.kept_tokens = tokens;
  return absl::OkStatus();
}

// Completions are not ranked. Checks `max_tokens` and `n`, too, which the table has before.
absl::Status ReadBestOf(JsonRequest& /*json*/, const JsonView& value, CompletionsRequest& request) {
  const int64_t n = request.call.completions, max_tokens = request.call.max_tokens;
  if (max_tokens == 0 && !request.call.echo) return FieldError("max_tokens", 0, "at least 1 without echo");
  if (max_tokens == 0 && n > 1) return FieldError("n", n, "1 if max_tokens is 0");
  if (value.is_absent()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const int64_t best_of, value.Integer());
  return best_of == n ? absl::OkStatus() : value.Wrong(absl::StrCat(n, ", as n: every completion is returned"));
}

// Where a request has a member of its call, or of the call's sampling.
template <typename Value>
auto In(Value GenerateCall::*member) {
  return [member](CompletionsRequest& request) -> Value& { return request.call.*member; };
}
auto In(double core::SamplingOptions::*member) {
  return [member](CompletionsRequest& request) -> double& { return request.call.sampling.*member; };
}

constexpr char kStopType[] = R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})";
constexpr char kStreamOptionsType[] =
    R"({"type": "object", "properties": {"include_usage": {"type": "boolean", "default": false}}})";

RequestBody<CompletionsRequest> MakeCompletionsBody() {
  return {
      .name = "CompletionRequest",
      .fields =
          {
              CompletionsField::Model("A language model, NAME or NAME/VERSION. May be absent if one model is served."),
              {{.name = "prompt",
                .type = kPromptsType,
                .help = "A text, token ids, or a list of either.",
                .required = true},
               [](JsonRequest& json, const JsonView& value, CompletionsRequest& request) {
                 return json.ReadPrompts(value, request.prompts);
               }},
              CompletionsField::Integer("max_tokens",
                                        "Tokens of a completion. With 0 and `echo`, the prompts are only scored.",
                                        In(&GenerateCall::max_tokens), 16, 0),
              CompletionsField::Integer("n", "Completions of each prompt; up to 16.", In(&GenerateCall::completions), 1,
                                        1),
              CompletionsField::Number("temperature", "0 takes the likeliest token; at most 100.",
                                       In(&SamplingOptions::temperature), 1),
              CompletionsField::Number("top_p",
                                       "Samples from the likeliest tokens that together have this probability.",
                                       In(&SamplingOptions::top_p), 1),
              {{"top_k", "integer", "Samples from so many of the likeliest tokens; 0 and -1: all."}, ReadTopK},
              CompletionsField::Number(
                  "min_p", "Samples from tokens with at least this part of the likeliest one's probability.",
                  In(&SamplingOptions::min_p), 0),
              CompletionsField::Number("repetition_penalty", "Divides the logits of tokens that occurred.",
                                       In(&SamplingOptions::repetition_penalty), 1),
              CompletionsField::Number("frequency_penalty", "Taken from a token's logit each time that it occurred.",
                                       In(&SamplingOptions::frequency_penalty), 0),
              CompletionsField::Number("presence_penalty", "Taken from the logits of tokens that occurred.",
                                       In(&SamplingOptions::presence_penalty), 0),
              CompletionsField::Flag("echo", "Whether a choice begins with its prompt.", In(&GenerateCall::echo)),
              CompletionsField::Flag("stream", "Whether the answer comes as server-sent events.",
                                     &CompletionsRequest::stream),
              {{.name = "truncate_prompt_tokens",
                .type = "integer",
                .help =
                    "A prompt keeps so many of its last tokens; -1: the most that the server takes. By default, all.",
                .low = kMostTokens},
               ReadKeptTokens},
              {{"logprobs", "integer", "Log-probabilities of the tokens, with up to 20 alternatives each."},
               ReadLogprobs},
              {{"best_of", "integer", "Must equal `n`."}, ReadBestOf},
              {{"stop", kStopType, "Strings before which the text ends; up to 16."}, ReadStop},
              {{"logit_bias", "{number}", "Added to the logits of tokens, by their ids."}, ReadLogitBias},
              {{"seed", "integer", "64 bits. The same seed gives the same text."}, ReadSeed},
              {{"stream_options", kStreamOptionsType, "Whether the last part of a stream has the usage."},
               ReadStreamOptions},
          },
      .refused = {
          {"suffix", "the models continue a prompt, and do not fill in before a suffix", R"([""])"},
          {"messages", "messages are of chats; these models continue a text: send `prompt`"},
          {"prompt_embeds", "the models read text and token ids: send `prompt`"},
          {"tools", kNoTools, "[[]]"},
          {"tool_choice", kNoTools, R"(["none", "auto"])"},
          {"functions", kNoTools, "[[]]"},
          {"function_call", kNoTools, R"(["none", "auto"])"},
          {"response_format", kNoForm, R"([{"type": "text"}])"},
          {"structured_outputs", kNoForm},
          {"guided_json", kNoForm},
          {"guided_regex", kNoForm, R"([""])"},
          {"guided_choice", kNoForm, "[[]]"},
          {"guided_grammar", kNoForm, R"([""])"},
          {"json_schema", kNoForm},
          {"grammar", kNoForm, R"([""])"},
          {"regex", kNoForm, R"([""])"},
          {"ebnf", kNoForm, R"([""])"},
          {"use_beam_search", kNoBeams, "[false]"},
          {"num_beams", kNoBeams, "[1]"},
          {"length_penalty", kNoBeams, "[1]"},
          {"do_sample", "the server samples; send a `temperature` of 0 for the likeliest tokens", "[true]"},
          {"repeat_penalty", "send `repetition_penalty`", "[1]"},
          {"typical_p", kNoSampler, "[1]"},
          {"tfs_z", kNoSampler, "[1]"},
          {"top_a", kNoSampler, "[0]"},
          {"mirostat", kNoSampler, "[0]"},
          {"mirostat_mode", kNoSampler, "[0]"},
          {"no_repeat_ngram_size", kNoSampler, "[0]"},
          {"dry_multiplier", kNoSampler, "[0]"},
          {"xtc_probability", kNoSampler, "[0]"},
          {"logits_processors", kNoSampler, "[[]]"},
          {"max_completion_tokens", "it is of chats; send `max_tokens`"},
          {"max_new_tokens", kMaxTokens},
          {"n_predict", kMaxTokens},
          {"top_logprobs", "it is of chats; send a number as `logprobs`", "[0]"},
          {"prompt_logprobs", "send `logprobs` with `echo`"},
          {"min_tokens", kNoMinimum, "[0]"},
          {"min_new_tokens", kNoMinimum, "[0]"},
          {"stop_token_ids", "send the text of these tokens as `stop`", "[[]]"},
          {"include_stop_str_in_output", "the text ends before the string of `stop`", "[false]"},
          {"bad_words", "send a `logit_bias` of -100", "[[]]"},
          {"allowed_token_ids", "send a `logit_bias` of -100 for the others"},
          {"return_tokens_as_token_ids", kTokensAreText, "[false]"},
          {"return_token_ids", kTokensAreText, "[false]"},
      }};
}

}  // namespace

const RequestBody<CompletionsRequest>& CompletionsBody() {
  static const auto* const body = new RequestBody<CompletionsRequest>(MakeCompletionsBody());
  return *body;
}

absl::Status ReadCompletions(HttpRequest& http, const RequestLimits& limits, CompletionsRequest& request,
                             MemoryMeter& meter) {
  const JsonListLimit lists[] = {LimitOfTexts("prompt", limits.inputs, limits),
                                 {.key = "stop", .elements = limits.stop_strings},
                                 {.key = "logit_bias", .elements = limits.logit_biases}};
  return ReadJsonBody(CompletionsBody(), http.body, lists, meter, request);
}

}  // namespace longshort::server
