// The work on calls: one function for each kind.
//
// With a callback: after OK, `done` is called once, at once or later, on any thread; after an error, never. `done`
// keeps `record`. The data that `call` views may go away when the function returns.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/admission/stream_events.h"
#include "server/calls/classify_call.h"
#include "server/calls/generate_call.h"
#include "server/calls/score_call.h"
#include "server/calls/session_calls.h"

namespace longshort::server {

// Scores the texts of one call: each is a request to the engine; the call ends when all have.
absl::Status ScoreTexts(CallRecord& record, const ScoreCall& call,
                        std::function<void(absl::StatusOr<ScoreResult>)> done);

// Classifies the images of one call: each is a request to the engine; the call ends when all have, whatever became of
// each.
absl::Status ClassifyImages(CallRecord& record, ClassifyCall call,
                            std::function<void(absl::StatusOr<ClassifyResult>)> done);

// Continues the prompt of one call: each completion is a request to the engine. With all texts, when all have ended.
absl::Status Generate(CallRecord& record, const GenerateCall& call,
                      std::function<void(absl::StatusOr<GenerateResult>)> done);
// Streams the texts. On OK, `sink` has been opened and will be closed; on an error it is not called. The sink owns the
// record.
absl::Status GenerateStream(CallRecord& record, const GenerateCall& call, std::shared_ptr<GenerationSink> sink);

// A text as token ids, or ids checked. Answered at once, without the engine.
absl::StatusOr<TokenizeResult> Tokenize(CallRecord& record, const TokenizeCall& call);

// Errors: as CallRecord::FindLanguageModel; INVALID_ARGUMENT for an invalid page size or token; PERMISSION_DENIED if
// `all_owners` is set without the scope `manage`.
absl::StatusOr<SessionList> ListSessions(CallRecord& record, const ListSessionsCall& call);
// Errors: as CheckSessionId, FindSessionKey, CallRecord::FindLanguageModel and SessionStore::Close; INVALID_ARGUMENT
// for negative expected tokens.
absl::Status CloseSession(CallRecord& record, const CloseSessionCall& call);

// Errors: PERMISSION_DENIED without --model-control, or if the caller may not use the model; INVALID_ARGUMENT for what
// names no model.
absl::Status LoadModel(CallRecord& record, const ModelReference& reference,
                       std::function<void(absl::StatusOr<std::shared_ptr<core::ServedModel>>)> done);
// Version 0 means all of its versions.
absl::Status UnloadModel(CallRecord& record, const ModelReference& reference, std::function<void(absl::Status)> done);

}  // namespace longshort::server
