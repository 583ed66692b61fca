// The handlers of calls, independent of the protocol: one function for each kind of call.
//
// Functions with a callback: after OK, `done` is called once, at once or later, on any thread; after an error, never.
// `done` holds `record`. The data that `call` views need not outlive the function.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/call/call_record.h"
#include "server/call/stream_events.h"
#include "server/calls/classifier_calls.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/calls/session_calls.h"

namespace longshort::server {

// Scores the texts of a call. Each is an engine request; the call ends when all have ended.
absl::Status ScoreText(CallRecord& record, const ScoreCall& call,
                       std::function<void(absl::StatusOr<ScoreResult>)> done);

// Classifies the images of a call. Each is an engine request; the call ends when all have ended, successfully or not.
absl::Status ClassifyImages(CallRecord& record, ClassifyCall call,
                            std::function<void(absl::StatusOr<ClassifyResult>)> done);

// Embeds the texts or images of a call with a classifier. Each is an engine request; the call ends when all have ended.
absl::Status Embed(CallRecord& record, EmbedCall call, std::function<void(absl::StatusOr<EmbedResult>)> done);

// Continues the prompt of a call. Each completion is an engine request; the call ends when all have ended.
absl::Status Generate(CallRecord& record, const GenerateCall& call,
                      std::function<void(absl::StatusOr<GenerateResult>)> done);
// As Generate, but streams the text to `sink`. On OK `sink` has been opened and will be closed; on an error it is not
// used. The sink owns the record.
absl::Status GenerateStream(CallRecord& record, const GenerateCall& call, const std::shared_ptr<GenerationSink>& sink);

// Converts a text to token ids, or checks ids. Returns at once and needs no engine.
absl::StatusOr<TokenizeResult> Tokenize(CallRecord& record, const TokenizeCall& call);

// Errors: those of CallRecord::FindLanguageModel; INVALID_ARGUMENT for an invalid page size or token; PERMISSION_DENIED
// if `all_owners` is set without the scope `manage`.
absl::StatusOr<SessionList> ListSessions(CallRecord& record, const ListSessionsCall& call);
// Errors: those of CheckSessionId, FindSessionKey, CallRecord::FindLanguageModel and SessionStore::Close;
// INVALID_ARGUMENT for negative expected tokens.
absl::Status CloseSession(CallRecord& record, const CloseSessionCall& call);

// Errors: PERMISSION_DENIED without --model-control, or if the caller may not use the model; INVALID_ARGUMENT for an
// invalid reference.
// `done` keeps the record.
absl::Status LoadModel(CallRecord& record, const ModelReference& reference,
                       std::function<void(absl::StatusOr<core::LoadedVersion>)> done);
// Version 0 means all versions of the model.
absl::Status UnloadModel(CallRecord& record, const ModelReference& reference, std::function<void(absl::Status)> done);

}  // namespace longshort::server
