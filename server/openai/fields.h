// The fields of the requests of OpenAI's completions and embeddings.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace longshort::server {

inline constexpr std::array<std::string_view, 17> kCompletionsFields = {"model",
                                                                        "prompt",
                                                                        "max_tokens",
                                                                        "n",
                                                                        "best_of",
                                                                        "temperature",
                                                                        "top_p",
                                                                        "frequency_penalty",
                                                                        "presence_penalty",
                                                                        "logit_bias",
                                                                        "seed",
                                                                        "stop",
                                                                        "echo",
                                                                        "logprobs",
                                                                        "stream",
                                                                        "stream_options",
                                                                        "user"};

inline constexpr std::array<std::string_view, 5> kEmbeddingsFields = {"model", "input", "encoding_format", "dimensions",
                                                                      "user"};

// Fields of OpenAI's API, of completions and of other calls, that models that continue a text do not support.
struct RefusedField {
  std::string_view field;
  const char* why;
};
inline constexpr RefusedField kRefusedFields[] = {
    {"suffix", "the models continue a prompt, and do not fill in before a suffix"},
    {"messages", "messages are of chats; these models continue a text: send `prompt`"},
    {"tools", "the models have no tools"},
    {"tool_choice", "the models have no tools"},
    {"functions", "the models have no tools"},
    {"function_call", "the models have no tools"},
    {"response_format", "the models have no answer format; `stop` and `logit_bias` guide the text"},
    {"max_completion_tokens", "it is of chats; send `max_tokens`"},
    {"top_logprobs", "it is of chats; send a number as `logprobs`"},
};

// The first of these fields that an error's message names as a word of its own; most errors begin with it. An unknown
// field is in quotes.
std::optional<std::string_view> FieldIn(std::string_view message);

}  // namespace longshort::server
