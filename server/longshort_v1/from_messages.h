// Messages of longshort.v1 as calls. What shows a message's texts is valid as long as the message.
#pragma once

#include "longshort/v1/inference.pb.h"
#include "longshort/v1/sessions.pb.h"
#include "longshort/v1/types.pb.h"
#include "server/calls/classify_call.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/calls/session_calls.h"
#include "server/sessions/session_export.h"

namespace longshort {

ModelReference FromMessage(const v1::ModelSelector& message);
TextInput FromMessage(const v1::Input& message);
SamplingOptions FromMessage(const v1::Sampling& message);
SessionReference FromMessage(const v1::Session& message);
// Keeps the image.
ImageInput FromMessage(v1::Image message);

ScoreCall FromMessage(const v1::ScoreTextRequest& message);
StreamedText FromMessage(const v1::ScoreTextsRequest& message);
ClassifyCall FromMessage(v1::ClassifyImageRequest message);
GenerateCall FromMessage(const v1::GenerateRequest& message);
TokenizeCall FromMessage(const v1::TokenizeRequest& message);

ListSessionsCall FromMessage(const v1::ListSessionsRequest& message);
CloseSessionCall FromMessage(const v1::CloseSessionRequest& message);
SessionHeader FromMessage(const v1::SessionHeader& message);
Seal FromMessage(const v1::SessionSeal& message);

}  // namespace longshort
