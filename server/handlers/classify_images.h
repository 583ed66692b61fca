// Classifies the images of one call: each is a request to the engine; the call ends when all have, whatever became of
// each.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/calls/classify_call.h"

namespace longshort {

// On OK `done` will hear, once, at once or later and by any thread; on an error it never does. `done` keeps `record`.
absl::Status ClassifyImages(CallRecord& record, ClassifyCall call,
                            std::function<void(absl::StatusOr<ClassifyResult>)> done);

}  // namespace longshort
