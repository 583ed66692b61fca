// The fields of the requests of OpenAI's completions and embeddings.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace longshort::server {

inline constexpr std::array<std::string_view, 20> kCompletionsFields = {"model",
                                                                        "prompt",
                                                                        "max_tokens",
                                                                        "n",
                                                                        "best_of",
                                                                        "temperature",
                                                                        "top_p",
                                                                        "top_k",
                                                                        "min_p",
                                                                        "frequency_penalty",
                                                                        "presence_penalty",
                                                                        "repetition_penalty",
                                                                        "logit_bias",
                                                                        "seed",
                                                                        "stop",
                                                                        "echo",
                                                                        "logprobs",
                                                                        "stream",
                                                                        "stream_options",
                                                                        "truncate_prompt_tokens"};

inline constexpr std::array<std::string_view, 7> kEmbeddingsFields = {
    "model", "input", "encoding_format", "dimensions", "truncate", "truncation_direction", "truncate_prompt_tokens"};

// Fields of OpenAI's API and of servers that extend it that would change the answer, and that models that continue a
// text do not support. Other unknown fields are ignored, because clients add some.
struct RefusedField {
  std::string_view field;
  const char* why;
  // A JSON list of values with which the field changes nothing: clients that send their defaults are served.
  const char* neutral = "[]";
};
inline constexpr char kNoTools[] = "the models have no tools";
inline constexpr char kNoForm[] = "the models have no answer format; `stop` and `logit_bias` guide the text";
inline constexpr char kNoBeams[] = "the server samples, and searches no beams";
inline constexpr char kNoSampler[] =
    "the server samples by `temperature`, `top_k`, `top_p`, `min_p` and three penalties: `repetition_penalty`, "
    "`frequency_penalty`, `presence_penalty`";
inline constexpr char kMaxTokens[] = "send `max_tokens`";
inline constexpr char kTokensAreText[] = "tokens are returned as text";
inline constexpr char kNoMinimum[] = "a completion ends at `max_tokens` or a string of `stop`; send fewer of these";
inline constexpr RefusedField kRefusedFields[] = {
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
};

// The first of these fields that an error's message names as a word of its own; most errors begin with it.
std::optional<std::string_view> FieldIn(std::string_view message);

}  // namespace longshort::server
