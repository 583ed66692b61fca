// How the Open Inference Protocol calls its RPCs and what a request has.
#pragma once

#include "server/calls/call_names.h"

namespace longshort::server {

// Inputs by their names; what longshort.v1 has in fields, by the parameter.
extern const FieldVocabulary kOpenInferenceVocabulary;

// One request of a stream, which counts as a call of its own.
inline constexpr CallNames kStreamedRequestNames(kOpenInferenceVocabulary,
                                                 "inference.GRPCInferenceService/ModelStreamInfer.request",
                                                 {.scope = Scope::kInfer});

// The inputs and outputs of models, and the parameters of requests.
inline constexpr char kPromptInput[] = "prompt";
inline constexpr char kDocumentInput[] = "document";
inline constexpr char kSecondDocumentInput[] = "second_document";
inline constexpr char kImageInput[] = "image";

}  // namespace longshort::server
