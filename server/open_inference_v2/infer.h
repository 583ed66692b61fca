// ModelInfer's work, whatever the model: a request becomes a call, and its result an answer.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "open_inference/v2/service.pb.h"
#include "server/admission/call_record.h"
#include "server/open_inference_v2/infer_plan.h"

namespace longshort {

using InferDone = std::function<void(absl::StatusOr<inference::ModelInferResponse>)>;

// On OK `done` will hear, once, at once or later and by any thread; on an error it never does. What the plan shows is
// not needed any more when this returns. `done` keeps `record`.
absl::Status Infer(CallRecord& record, InferPlan plan, InferDone done);

}  // namespace longshort
