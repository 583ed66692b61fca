// Scores the texts of one call: each is a request to the engine; the call ends when all have.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/calls/score_call.h"

namespace longshort {

// On OK `done` will hear, once, at once or later and by any thread; on an error it never does. What `call` shows is not
// needed any more when this returns. `done` keeps `record`.
absl::Status ScoreTexts(CallRecord& record, const ScoreCall& call,
                        std::function<void(absl::StatusOr<ScoreResult>)> done);

}  // namespace longshort
