// CloseSession.
#pragma once

#include "absl/status/statusor.h"
#include "longshort/v1/sessions.pb.h"
#include "server/rpc/call_record.h"

namespace longshort {

absl::StatusOr<v1::CloseSessionResponse> CloseSession(CallRecord& record, const v1::CloseSessionRequest& request);

}  // namespace longshort
