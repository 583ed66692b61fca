// What /openapi.json says of the room's bodies and answers. Requests are described by the tables that read them.

#include "server/fronts/openai/openai.h"

namespace longshort::server {
namespace {

// A list of the logarithms of probabilities; the first token of a prompt has none.
constexpr char kNumbersOrNull[] = R"({"type": "array", "items": {"type": ["number", "null"]}})";
constexpr char kTopType[] =
    R"({"type": "array", "items": {"type": ["object", "null"], "additionalProperties": {"type": "number"}}})";
constexpr char kVectorType[] = R"({"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]})";

}  // namespace

std::vector<NamedSchema> OpenAiSchemas() {
  return {
      CompletionsBody().Schema(),
      EmbeddingsBody().Schema(),
      EmbedBody().Schema(),
      PredictBody().Schema(),
      TokenizeBody().Schema(),
      DetokenizeBody().Schema(),
      {.name = "Completion",
       .fields = {{"id", "string", "The id of the call."},
                  {"object", "string", "text_completion"},
                  {"created", "integer", "Unix time in seconds."},
                  {"model", "string", "The model's name."},
                  {"choices", "[CompletionChoice]", "The completions, prompt by prompt."},
                  {"usage", "CompletionUsage", "The tokens of the call."}}},
      {.name = "CompletionChoice",
       .fields = {{"index", "integer", "The number of the completion."},
                  {"text", "string", "The text."},
                  {"logprobs", "CompletionLogprobs?", "If they are requested."},
                  {"finish_reason", "string?", "length or stop; null in a stream until the end."}}},
      {.name = "CompletionLogprobs",
       .fields = {{"tokens", "[string]", "The tokens."},
                  {"token_logprobs", kNumbersOrNull, "Natural logarithms of their probabilities."},
                  {"top_logprobs", kTopType, "The likeliest tokens at each position."},
                  {"text_offset", "[integer]", "Where the tokens begin, in characters."}}},
      {.name = "CompletionUsage",
       .fields = {{"prompt_tokens", "integer", ""},
                  {"completion_tokens", "integer", ""},
                  {"total_tokens", "integer", ""},
                  {"prompt_tokens_details", "{integer}", "cached_tokens: those found in the cache."}}},
      {.name = "EmbeddingList",
       .fields = {{"object", "string", "list"},
                  {"data", "[Embedding]", "The embeddings, in the order of the inputs."},
                  {"model", "string", "The model's name."},
                  {"usage", "EmbeddingsUsage", "The tokens of the call."}}},
      {.name = "Embedding",
       .fields = {{"object", "string", "embedding"},
                  {"index", "integer", "The number of the input."},
                  {"embedding", kVectorType, "Numbers; in base64, 32-bit floats, lowest byte first."}}},
      {.name = "EmbeddingsUsage", .fields = {{"prompt_tokens", "integer", ""}, {"total_tokens", "integer", ""}}},
      {.name = "ModelList", .fields = {{"object", "string", "list"}, {"data", "[Model]", "The models."}}},
      {.name = "Model",
       .fields = {{"id", "string", "The model's name."},
                  {"object", "string", "model"},
                  {"created", "integer", "When the server started, a Unix time in seconds."},
                  {"owned_by", "string", "longshort"}}},
      {.name = "OpenAIError", .fields = {{"error", "OpenAIErrorContent", ""}}},
      {.name = "OpenAIErrorContent",
       .fields = {{"message", "string", "What is wrong: the field, its value, and the limit."},
                  {"type", "string", "invalid_request_error, rate_limit_error or server_error."},
                  {"param", "string?", "The field."},
                  {"code", "string?", "Such as model_not_found."}}},
      {.name = "Prediction",
       .fields = {{"score", "number", "The probability, or the logit."}, {"label", "string", "The class."}}},
      {.name = "ImageClassification",
       .fields = {{"model", "string", "The model's name."},
                  {"version", "integer", "Its version."},
                  {"classes", "[ImageClass]", "The likeliest classes first."}}},
      {.name = "ImageClass",
       .fields = {{"index", "integer", "The number of the class."},
                  {"label", "string", "Its name."},
                  {"probability", "number", ""}}},
      {.name = "ImageForm",
       .kind = BodyKind::kRequest,
       .fields = {{.name = "image", .type = "bytes", .help = "The file.", .required = true},
                  {"model", "string", "The classifier."},
                  {"top_k", "integer", "How many classes."}}},
      {.name = "Problem",
       .fields = {{"type", "string", "about:blank"},
                  {"title", "string", "The words for the status."},
                  {"status", "integer", "The status."},
                  {"detail", "string", "What is wrong: the field, its value, and the limit."},
                  {.name = "error", .type = "string", .help = "The same as detail.", .optional = true},
                  {.name = "code", .type = "string", .help = "Such as invalid_argument.", .optional = true}}},
      {.name = "TokenizerInfo",
       .fields = {{"model", "string", "The model's name."},
                  {"vocab_size", "integer", "Token ids are below it."},
                  {"eos_token", "string", "The text between documents."},
                  {"bos_token", "string?", ""},
                  {"pad_token", "string?", ""}}},
      {.name = "Tokens",
       .fields = {{"count", "integer", "How many tokens."},
                  {"max_model_len", "integer", "The most tokens of a prompt."},
                  {"tokens", "[integer]", "Their ids."}}},
      {.name = "DecodedText", .fields = {{"prompt", "string", "The text."}}},
  };
}

}  // namespace longshort::server
