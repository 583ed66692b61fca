// The Open Inference Protocol's names of RPCs, inputs and parameters.
#pragma once

#include "server/calls/call_names.h"

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

}  // namespace longshort::server
