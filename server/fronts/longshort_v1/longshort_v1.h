// The contract longshort.v1: its RPCs, and conversions between its messages and the protocol-independent calls and
// results.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"
#include "longshort/v1/sessions.pb.h"
#include "longshort/v1/types.pb.h"
#include "server/call/rpc.h"
#include "server/calls/classifier_calls.h"
#include "server/calls/generate_call.h"
#include "server/calls/request_limits.h"
#include "server/calls/score_call.h"
#include "server/calls/session_calls.h"
#include "server/handlers/session_transfer.h"

namespace longshort::server {

// Calls view the texts of their message: they are valid as long as the message.
ModelReference FromMessage(const v1::ModelSelector& message);
TextInput FromMessage(const v1::Input& message);
core::SamplingOptions FromMessage(const v1::Sampling& message);
core::SessionReference FromMessage(const v1::Session& message);
// Holds the message of the image.
ImageInput FromMessage(v1::Image message);

ScoreCall FromMessage(const v1::ScoreTextRequest& message);
StreamedText FromMessage(const v1::ScoreTextsRequest& message);
// These calls hold the images, which they take from the message.
ClassifyCall FromMessage(v1::ClassifyImageRequest& message);
EmbedCall FromMessage(v1::EmbedRequest& message);
GenerateCall FromMessage(const v1::GenerateRequest& message);
TokenizeCall FromMessage(const v1::TokenizeRequest& message);

ListSessionsCall FromMessage(const v1::ListSessionsRequest& message);
CloseSessionCall FromMessage(const v1::CloseSessionRequest& message);
SessionHeader FromMessage(const v1::SessionHeader& message);
Seal FromMessage(const v1::SessionSeal& message);

v1::Classification ToMessage(const Classification& classification);
// REQUIRES: not OK.
v1::ItemError ToItemError(const absl::Status& status);

// Functions that take a result by value consume it, and release the model that it holds.
v1::ScoreTextResponse ToMessage(const ScoreResult& result);
// The answer for document `id` of a stream.
v1::ScoreTextsResponse ToMessage(uint64_t id, const core::ServedModel& model, const absl::StatusOr<ScoredText>& scored);
v1::ClassifyImageResponse ToMessage(const ClassifyResult& result);
v1::EmbedResponse ToMessage(const EmbedResult& result);
v1::GenerateResponse ToMessage(GenerateResult result);
v1::TokenizeResponse ToMessage(TokenizeResult result);

// `tokenizer` decodes the tokens of a delta; null if the model has no vocabulary.
v1::GenerateStreamResponse ToMessage(StreamEvent event, const models::Tokenizer* tokenizer);

v1::Model ToMessage(const core::ServedModel& served, const RequestLimits& limits);
v1::LoadOutcome ToMessage(core::LoadOutcome outcome);

v1::ListSessionsResponse ToMessage(SessionList list);
v1::SessionPart ToMessage(SessionPart part);

std::vector<Rpc> LongshortV1Rpcs();

// The work of the streaming RPCs.
std::unique_ptr<CallWork> MakeGenerateStream(Call& call);
std::unique_ptr<CallWork> MakeScoreTexts(Call& call);
std::unique_ptr<CallWork> MakeExportSession(Call& call);
std::unique_ptr<CallWork> MakeImportSession(Call& call);

}  // namespace longshort::server
