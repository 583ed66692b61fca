// Results of calls as messages of longshort.v1.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"
#include "longshort/v1/sessions.pb.h"
#include "longshort/v1/types.pb.h"
#include "server/calls/classify_call.h"
#include "server/calls/generate_call.h"
#include "server/calls/model_description.h"
#include "server/calls/score_call.h"
#include "server/calls/session_calls.h"
#include "server/sessions/session_export.h"

namespace longshort {

v1::Classification ToMessage(const Classification& classification);
// REQUIRES: not OK.
v1::ItemError ToItemError(const absl::Status& status);

// A result that is taken by value is used up, with what it keeps of the model.
v1::ScoreTextResponse ToMessage(const ScoreResult& result);
// About document `id` of a stream.
v1::ScoreTextsResponse ToMessage(uint64_t id, const ServedModel& model, const absl::StatusOr<ScoredText>& scored);
v1::ClassifyImageResponse ToMessage(const ClassifyResult& result);
v1::GenerateResponse ToMessage(GenerateResult result);
v1::TokenizeResponse ToMessage(TokenizeResult result);

// `tokenizer`: what the tokens of a delta stand for; null if they stand for nothing.
v1::GenerateStreamResponse ToMessage(StreamEvent event, const Tokenizer* tokenizer);

v1::Model ToMessage(const ModelDescription& description);

v1::ListSessionsResponse ToMessage(SessionList list);
v1::SessionPart ToMessage(SessionPart part);

}  // namespace longshort
