// Loading and unloading models, as calls say.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/calls/model_reference.h"

namespace longshort {

// On OK `done` will hear, once, by any thread; on an error it never does. `done` keeps `record`. Errors:
// PERMISSION_DENIED without --model-control, or if the caller may not use the model; INVALID_ARGUMENT for what names no
// model.
absl::Status LoadModel(CallRecord& record, const ModelReference& reference,
                       std::function<void(absl::StatusOr<std::shared_ptr<ServedModel>>)> done);
// Version 0 means all of its versions.
absl::Status UnloadModel(CallRecord& record, const ModelReference& reference, std::function<void(absl::Status)> done);

}  // namespace longshort
