// HTTP calls that clients of other servers know: OpenAI's completions, embeddings and models; TEI's predict and embed;
// images as bodies; and the tokenizer's paths, as vLLM has them. gRPC does not serve them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_meter.h"
#include "core/registry/served_model.h"
#include "nlohmann/json.hpp"
#include "server/call/call_environment.h"
#include "server/call/call_record.h"
#include "server/call/unary.h"
#include "server/calls/call_names.h"
#include "server/calls/classifier_calls.h"
#include "server/calls/generate_call.h"
#include "server/calls/request_limits.h"
#include "server/fronts/json/openapi.h"
#include "server/fronts/openai/request_body.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_exchange.h"
#include "server/transports/http/http_message.h"

namespace longshort::server {

// `environment` must outlive the front and its calls.
HttpFront OpenAiFront(const CallEnvironment& environment);

// The room's paths for /openapi.json, and the objects of their bodies.
HttpDescription OpenAiDescription();
std::vector<NamedSchema> OpenAiSchemas();

// The requests. A model's name is empty for the only model of its kind that the caller may use.

struct CompletionsRequest {
  std::string model;
  std::vector<Prompt> prompts;
  // Without model and prompts, which views of the other members become.
  GenerateCall call;
  bool stream = false;
  bool include_usage = false;
  // Each prompt keeps so many of its last tokens; 0 keeps all, kMostTokens as many as the server takes.
  int64_t kept_tokens = 0;
};
inline constexpr int kMostTokens = -1;

struct EmbeddingsRequest {
  std::string model;
  std::vector<Prompt> inputs;
  bool in_base64 = false;
  bool normalize = true;
  bool truncate = false;
  int64_t dimensions = 0;  // the width that the client expects; 0: any
  bool as_lists = false;   // the answer is a list of lists, as TEI's
};

// TEI's /predict.
struct PredictRequest {
  std::string model;
  std::vector<std::vector<std::string>> inputs;  // each one text, or the two of a pair
  bool is_string = false;                        // whether `inputs` was one string
  std::optional<std::string> image = {};         // in place of `inputs`, for a model of images
  bool truncate = false;
  bool raw_scores = false;
  int64_t top_k = 0;            // 0: all classes
  bool has_parameters = false;  // whether the request is one of huggingface_hub's
  // huggingface_hub's "softmax", "sigmoid" or "none"; empty: the model's.
  std::string function_to_apply;
};

struct ClassifyRequest {
  std::string model;
  int64_t top_k = 0;  // 0: the default
  std::string image;
  std::string function_to_apply;  // as in PredictRequest
  bool as_list = false;           // the answer is a list, as huggingface_hub wants it
};

struct TokenizerRequest {
  std::string model;
  std::string prompt;           // to tokenize
  std::vector<int32_t> tokens;  // to detokenize
};

// The tables of the bodies' fields.
const RequestBody<CompletionsRequest>& CompletionsBody();
const RequestBody<EmbeddingsRequest>& EmbeddingsBody();
const RequestBody<EmbeddingsRequest>& EmbedBody();
const RequestBody<PredictRequest>& PredictBody();
const RequestBody<TokenizerRequest>& TokenizeBody();
const RequestBody<TokenizerRequest>& DetokenizeBody();

// Functions that read a request from its body, its query or its path. The meter counts what the request takes.
// Errors: INVALID_ARGUMENT in the words of the path's protocol, also for fields that this server does not support; the
// meter's.
template <typename Request>
using ReadHttp = absl::Status(HttpRequest& http, const RequestLimits& limits, Request& request, MemoryMeter& meter);
ReadHttp<CompletionsRequest> ReadCompletions;
ReadHttp<EmbeddingsRequest> ReadEmbeddings;
ReadHttp<EmbeddingsRequest> ReadEmbed;
ReadHttp<PredictRequest> ReadPredict;
ReadHttp<ClassifyRequest> ReadClassify;
ReadHttp<TokenizerRequest> ReadTokenizerInfo;
ReadHttp<TokenizerRequest> ReadTokenize;
ReadHttp<TokenizerRequest> ReadDetokenize;

// Reads the request of `call`, which came by HTTP.
template <typename Request>
absl::Status ReadFrom(Call& call, ReadHttp<Request>* read, Request& request) {
  return static_cast<HttpCall&>(call).ReadBody(
      [&](HttpRequest& http, MemoryMeter& meter) { return read(http, call.environment().limits, request, meter); });
}

// Images in the bodies of HTTP: as they are, as a form's file (curl -F), or in JSON as base64 or a data URL.

// Leaves the file of a form (multipart/form-data) as the body, and calls `set` with every other field. Errors:
// INVALID_ARGUMENT if there is no file; those of `set`.
using SetFormField = absl::FunctionRef<absl::Status(const std::string& name, const std::string& value)>;
absl::Status KeepFileOfForm(HttpRequest& request, SetFormField set);

// The file of a body that is no JSON, which it consumes. Errors: INVALID_ARGUMENT if there is none; the meter's.
absl::StatusOr<std::string> TakeImage(HttpRequest& request, MemoryMeter& meter);

// The file in `text`: "data:image/png;base64,..." or base64. Errors: INVALID_ARGUMENT naming the field; the meter's.
absl::StatusOr<std::string> ImageOfText(const std::string& field, std::string_view text, MemoryMeter& meter);

// The work.
//
// A completions request that does not ask for a stream has one answer, which is sent with the status.
std::unique_ptr<CallWork> MakeCompletions(Call& call);
absl::Status CreateEmbeddings(CallRecord& record, const EmbeddingsRequest& request, const Answerer<CallAnswer>& answer);
absl::Status Predict(CallRecord& record, PredictRequest request, const Answerer<CallAnswer>& answer);
absl::Status Classify(CallRecord& record, ClassifyRequest request, const Answerer<CallAnswer>& answer);
absl::StatusOr<CallAnswer> DescribeTokenizer(CallRecord& record, const TokenizerRequest& request);
absl::StatusOr<CallAnswer> TokenizePrompt(CallRecord& record, const TokenizerRequest& request);
absl::StatusOr<CallAnswer> Detokenize(CallRecord& record, const TokenizerRequest& request);

// OpenAI's form of an answer. REQUIRES: no embedding is an error.
std::string EmbeddingsJson(const EmbedResult& result, bool in_base64);
// A short answer.
CallAnswer ShortAnswer(const nlohmann::ordered_json& json);
// The data as an event of a stream.
std::string ServerSentEvent(const std::string& data);

// An error as OpenAI's JSON, with its HTTP status.
HttpResponse OpenAiError(const absl::Status& status);
// OpenAI's answer to a path that the server does not have.
HttpResponse NoSuchPathError(const HttpRequest& head);
// An error as problem details (RFC 9457).
HttpResponse ProblemDetails(const absl::Status& status);

// The names of the requests' fields.
extern const FieldVocabulary kCompletionsVocabulary;
extern const FieldVocabulary kEmbeddingsVocabulary;
extern const FieldVocabulary kClassifierVocabulary;

// The model "NAME", or "NAME/VERSION".
ModelReference ReferenceOf(const std::string& name);

// The model `name`, or if that is empty the only one of its `kind` that the caller may use. Errors: NOT_FOUND if there
// is none, INVALID_ARGUMENT naming them if there are several.
absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind);

}  // namespace longshort::server
