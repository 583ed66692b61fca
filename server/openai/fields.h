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

inline constexpr std::array<std::string_view, 4> kEmbeddingsFields = {"model", "input", "encoding_format",
                                                                      "dimensions"};

// Fields of OpenAI's API and of servers that extend it that would change the answer, and that models that continue a
// text do not support. Other unknown fields are ignored, because clients add some.
struct RefusedField {
  std::string_view field;
  const char* why;
};
inline constexpr char kNoTools[] = "the models have no tools";
inline constexpr char kNoForm[] = "the models have no answer format; `stop` and `logit_bias` guide the text";
inline constexpr char kNoBeams[] = "the server samples, and searches no beams";
inline constexpr RefusedField kRefusedFields[] = {
    {"suffix", "the models continue a prompt, and do not fill in before a suffix"},
    {"messages", "messages are of chats; these models continue a text: send `prompt`"},
    {"tools", kNoTools},
    {"tool_choice", kNoTools},
    {"functions", kNoTools},
    {"function_call", kNoTools},
    {"response_format", kNoForm},
    {"structured_outputs", kNoForm},
    {"guided_json", kNoForm},
    {"guided_regex", kNoForm},
    {"guided_choice", kNoForm},
    {"guided_grammar", kNoForm},
    {"use_beam_search", kNoBeams},
    {"length_penalty", kNoBeams},
    {"max_completion_tokens", "it is of chats; send `max_tokens`"},
    {"top_logprobs", "it is of chats; send a number as `logprobs`"},
    {"prompt_logprobs", "send `logprobs` with `echo`"},
    {"min_tokens", "a completion ends at `max_tokens` or a string of `stop`; send fewer of these"},
    {"stop_token_ids", "send the text of these tokens as `stop`"},
    {"include_stop_str_in_output", "the text ends before the string of `stop`"},
    {"bad_words", "send a `logit_bias` of -100"},
    {"allowed_token_ids", "send a `logit_bias` of -100 for the others"},
    {"return_tokens_as_token_ids", "tokens are returned as text"},
};

// The first of these fields that an error's message names as a word of its own; most errors begin with it.
std::optional<std::string_view> FieldIn(std::string_view message);

}  // namespace longshort::server
