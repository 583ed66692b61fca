// The model of a request that may name none.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "server/call/call_record.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

// The model "NAME", or "NAME/VERSION".
ModelReference ReferenceOf(const std::string& name);

// The model `name`, or if that is empty the only one of its `kind` that the caller may use. Errors: NOT_FOUND if there
// is none, INVALID_ARGUMENT naming them if there are several.
absl::StatusOr<ModelReference> ChooseModel(const CallRecord& record, const std::string& name, const char* kind,
                                           absl::FunctionRef<bool(const core::ServedModel&)> is_of_kind);

}  // namespace longshort::server
