// Runs the texts of a unary call: each is an engine request. The engine has some of them at a time, so that a call may
// have more than the engine's queue, and has its share of the queue only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/call/call_record.h"
#include "server/calls/score_call.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {

// Scores the texts of a call, in their session if there is one. The queue takes at most `max_in_queue` of one client.
// `result` has its `served` model. `done` holds `record`. After OK it is called once, at once or later, on any thread;
// after an error, never.
// Errors: those of TextScorer; INVALID_ARGUMENT if the number of texts is out of range.
absl::Status RunTexts(CallRecord& record, const ScoreCall& call, const std::shared_ptr<const TextScorer>& scorer,
                      int64_t max_in_queue, ScoreResult result, std::function<void(absl::StatusOr<ScoreResult>)> done);

}  // namespace longshort::server
