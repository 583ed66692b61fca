// HTTP calls that clients of other servers know: OpenAI's completions, embeddings and models; TEI's predict and embed;
// images as bodies; and the tokenizer's paths, as vLLM has them. gRPC does not serve them.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_meter.h"
#include "nlohmann/json.hpp"
#include "server/call/call_environment.h"
#include "server/call/call_record.h"
#include "server/call/rpc.h"
#include "server/call/unary.h"
#include "server/calls/embed_call.h"
#include "server/calls/request_limits.h"
#include "server/fronts/json/openapi.h"
#include "server/fronts/openai/messages.pb.h"
#include "server/fronts/openai/request_body.h"
#include "server/transports/http/http_codec.h"
#include "server/transports/http/http_exchange.h"

namespace longshort::server {

std::vector<Rpc> OpenAiRpcs();

// `rpcs`: OpenAiRpcs(). Both arguments must outlive the front and its calls.
HttpFront OpenAiFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

// The room's paths for /openapi.json.
HttpDescription OpenAiDescription();

// A codec for one request to this path of the room. `limits` must outlive it.
std::unique_ptr<HttpCodec> MakeOpenAiCodec(std::string_view path, const RequestLimits& limits);

// The value of truncate_prompt_tokens that keeps as many tokens as the server takes.
inline constexpr int kMostTokens = -1;

// The tables of the bodies' fields.
const RequestBody& CompletionsBody();
const RequestBody& EmbeddingsBody();
const RequestBody& EmbedBody();
const RequestBody& PredictBody();
const RequestBody& TokenizeBody();
const RequestBody& DetokenizeBody();

// Functions that read a request from its body, its query or its path into the message of its row. The meter counts what
// the message takes. Errors: INVALID_ARGUMENT in the words of the path's protocol, also for fields that this server
// does not support; the meter's.
using ReadIntoMessage = absl::Status(HttpRequest& request, const RequestLimits& limits,
                                     google::protobuf::Message& message, MemoryMeter& meter);
ReadIntoMessage ReadModels;
ReadIntoMessage ReadCompletions;
ReadIntoMessage ReadEmbeddings;
ReadIntoMessage ReadEmbed;
ReadIntoMessage ReadPredict;
ReadIntoMessage ReadClassify;
ReadIntoMessage ReadTokenizerInfo;
ReadIntoMessage ReadTokenize;
ReadIntoMessage ReadDetokenize;

// The work. A request without a model's name means the only model of its kind that the caller may use.
//
// A completions request that does not ask for a stream has one answer, which is sent with the status.
std::unique_ptr<CallWork> MakeCompletions(Call& call);
// The vectors that the model's head reads, divided by their length, as OpenAI's are.
absl::Status CreateEmbeddings(CallRecord& record, const openai::EmbeddingsRequest& request,
                              const Answerer<CallAnswer>& answer);
absl::Status Predict(CallRecord& record, openai::PredictRequest request, const Answerer<CallAnswer>& answer);
absl::Status Classify(CallRecord& record, openai::ClassifyRequest request, const Answerer<CallAnswer>& answer);
absl::StatusOr<CallAnswer> AnswerTokenizer(CallRecord& record, const openai::TokenizerRequest& request);

// A codec for CompletionsRequest.
std::unique_ptr<HttpCodec> MakeCompletionsCodec(const RequestLimits& limits);
// OpenAI's form of an answer. REQUIRES: no embedding is an error.
std::string EmbeddingsJson(const EmbedResult& result, bool in_base64);
// A short answer.
CallAnswer ShortAnswer(const nlohmann::ordered_json& json);

// An error as OpenAI's JSON, with its HTTP status.
HttpResponse OpenAiError(const absl::Status& status);
// An error as problem details (RFC 9457).
HttpResponse ProblemDetails(const absl::Status& status);

}  // namespace longshort::server
