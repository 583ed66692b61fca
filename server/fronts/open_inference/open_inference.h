// The Open Inference Protocol: its names, its RPCs, and the paths of its REST form, /v2 and all below.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/call/call_environment.h"
#include "server/call/rpc.h"
#include "server/calls/call_names.h"
#include "server/fronts/json/openapi.h"
#include "server/transports/http/http_call.h"
#include "server/transports/http/http_exchange.h"

namespace longshort::server {

// Names inputs as the protocol does, and other fields of longshort.v1 by their parameters.
extern const FieldVocabulary kOpenInferenceVocabulary;

// One request of a stream, which counts as a call.
inline constexpr CallNames kStreamedRequestNames(kOpenInferenceVocabulary,
                                                 "inference.GRPCInferenceService/ModelStreamInfer.request",
                                                 {.scope = Scope::kInfer});

// The inputs and outputs of models, and the parameters of requests.
inline constexpr char kPromptInput[] = "prompt";
inline constexpr char kDocumentInput[] = "document";
inline constexpr char kSecondDocumentInput[] = "second_document";
inline constexpr char kImageInput[] = "image";

std::vector<Rpc> OpenInferenceRpcs();

// The work of ModelStreamInfer.
std::unique_ptr<CallWork> MakeInferStream(Call& call);

// Serves OpenInferenceRpcs, `rpcs`. Both arguments must outlive the front and its calls.
HttpFront OpenInferenceFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

// These paths for /openapi.json, without those that this server always refuses.
HttpDescription OpenInferenceDescription();

// What a path names beside the RPC; empty where it names nothing.
struct RestTarget {
  std::string name;
  std::string version;
};

// A codec for one request of `rpc`, one of OpenInferenceRpcs. `max_message_bytes`: as for a gRPC message, unpacked.
std::unique_ptr<HttpCodec> MakeRestCodec(const Rpc& rpc, RestTarget target, int64_t max_message_bytes);

// {"error": "..."}, with the HTTP status of the error.
HttpResponse RestError(const absl::Status& status);

}  // namespace longshort::server
