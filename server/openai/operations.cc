#include "server/openai/operations.h"

namespace longshort::server {
namespace {

constexpr char kTag[] = "OpenAI";
constexpr char kClassifiers[] = "Classifiers";

constexpr char kCompletionRequest[] = R"json({
  "type": "object",
  "required": ["model", "prompt"],
  "additionalProperties": false,
  "properties": {
    "model": {"type": "string"},
    "prompt": {"description": "A text, token ids, or a list of either."},
    "max_tokens": {"type": "integer", "minimum": 0, "default": 16},
    "temperature": {"type": "number", "default": 1},
    "top_p": {"type": "number", "default": 1},
    "n": {"type": "integer", "default": 1},
    "best_of": {"type": "integer"},
    "stop": {"description": "A string, or a list of strings."},
    "seed": {"type": "integer"},
    "echo": {"type": "boolean", "default": false},
    "logprobs": {"type": "integer", "minimum": 0, "maximum": 20},
    "logit_bias": {"type": "object", "additionalProperties": {"type": "number"}},
    "presence_penalty": {"type": "number", "default": 0},
    "frequency_penalty": {"type": "number", "default": 0},
    "stream": {"type": "boolean", "default": false},
    "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
    "user": {"type": "string"}
  }
})json";

constexpr char kCompletion[] = R"json({
  "type": "object",
  "properties": {
    "id": {"type": "string"},
    "object": {"type": "string"},
    "created": {"type": "integer"},
    "model": {"type": "string"},
    "choices": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "index": {"type": "integer"},
          "text": {"type": "string"},
          "logprobs": {"type": ["object", "null"]},
          "finish_reason": {"type": ["string", "null"]}
        }
      }
    },
    "usage": {"type": ["object", "null"]}
  }
})json";

constexpr char kEmbeddingsRequest[] = R"json({
  "type": "object",
  "required": ["model", "input"],
  "additionalProperties": false,
  "properties": {
    "model": {"type": "string"},
    "input": {"description": "A text, token ids, or a list of either."},
    "encoding_format": {"type": "string", "enum": ["float", "base64"], "default": "float"},
    "truncate": {"type": "boolean", "default": false},
    "user": {"type": "string"}
  }
})json";

constexpr char kEmbeddingsAnswer[] = R"json({
  "type": "object",
  "properties": {
    "object": {"type": "string"},
    "data": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "object": {"type": "string"},
          "index": {"type": "integer"},
          "embedding": {"description": "A list of numbers; with base64, their float32, lowest byte first."}
        }
      }
    },
    "model": {"type": "string"},
    "usage": {"type": "object"}
  }
})json";

constexpr char kModelObject[] = R"json({
  "type": "object",
  "properties": {
    "id": {"type": "string"},
    "object": {"type": "string"},
    "created": {"type": "integer"},
    "owned_by": {"type": "string"}
  }
})json";

constexpr char kModelList[] = R"json({
  "type": "object",
  "properties": {"object": {"type": "string"}, "data": {"type": "array", "items": {"type": "object"}}}
})json";

constexpr char kPredictRequest[] = R"json({
  "type": "object",
  "required": ["inputs"],
  "properties": {
    "inputs": {"description": "A text, a list of texts, or a list of lists of one text or of two, a pair."},
    "truncate": {"type": "boolean", "default": false},
    "raw_scores": {"type": "boolean", "default": false}
  }
})json";

constexpr char kBytes[] = R"json({"type": "string", "contentMediaType": "application/octet-stream"})json";

}  // namespace

std::vector<HttpOperation> OpenAiOperations() {
  const HttpContent events = {.type = "text/event-stream", .schema = R"({"type": "string"})"};
  return {
      {.method = "get",
       .path = "/v1/models",
       .tag = kTag,
       .id = "openai_models",
       .summary = "The models that are served.",
       .answers = {{.schema = kModelList}}},
      {.method = "get",
       .path = "/v1/models/{model}",
       .tag = kTag,
       .id = "openai_model",
       .summary = "One model.",
       .answers = {{.schema = kModelObject}}},
      {.method = "post",
       .path = "/v1/completions",
       .tag = kTag,
       .id = "openai_completions",
       .summary = "Continues prompts; with stream, by server-sent events.",
       .requests = {{.schema = kCompletionRequest}},
       .answers = {{.schema = kCompletion}, events}},
      {.method = "post",
       .path = "/v1/embeddings",
       .tag = kTag,
       .id = "openai_embeddings",
       .summary = "Embeds texts.",
       .requests = {{.schema = kEmbeddingsRequest}},
       .answers = {{.schema = kEmbeddingsAnswer}}},
      {.method = "post",
       .path = "/predict",
       .tag = kClassifiers,
       .id = "predict",
       .summary = "Classifies texts, as Text Embeddings Inference does.",
       .query = {"model"},
       .requests = {{.schema = kPredictRequest}},
       .answers = {{.schema = R"({"type": "array"})"}}},
      {.method = "post",
       .path = "/classify",
       .tag = kClassifiers,
       .id = "classify",
       .summary = "Classifies the image that is the body.",
       .query = {"model", "top_k"},
       .requests = {{.type = "image/jpeg", .schema = kBytes},
                    {.type = "image/png", .schema = kBytes},
                    {.type = "image/webp", .schema = kBytes}},
       .answers = {{.schema = R"({"type": "object"})"}}},
  };
}

}  // namespace longshort::server
