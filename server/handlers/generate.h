// Continues the prompt of one call: each completion is a request to the engine.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/admission/generation_sink.h"
#include "server/calls/generate_call.h"

namespace longshort {

// With all texts, when all have ended. On OK `done` will hear, once, at once or later and by any thread; on an error it
// never does. What `call` shows is not needed any more when this returns. `done` keeps `record`.
absl::Status Generate(CallRecord& record, const GenerateCall& call,
                      std::function<void(absl::StatusOr<GenerateResult>)> done);

// The texts as they come. On OK `sink` has been opened and will be closed; on an error it hears nothing. The record is
// the sink's.
absl::Status GenerateStream(CallRecord& record, const GenerateCall& call, std::shared_ptr<GenerationSink> sink);

}  // namespace longshort
