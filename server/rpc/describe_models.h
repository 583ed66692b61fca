// ListModels and GetModel: what is served. Answered at once, without the engine.
#pragma once

#include "absl/status/statusor.h"
#include "longshort/v1/models.pb.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_record.h"

namespace longshort {

v1::ListModelsResponse ListModels(const CallEnvironment& environment);

absl::StatusOr<v1::Model> GetModel(const RequestLimits& limits, CallRecord& record, const v1::GetModelRequest& request);

}  // namespace longshort
