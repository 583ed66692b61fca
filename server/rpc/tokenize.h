// Tokenize: text to ids, or ids checked, with the bytes of each. Answered at once, without the engine.
#pragma once

#include "absl/status/statusor.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/request_limits.h"
#include "server/rpc/call_record.h"

namespace longshort {

absl::StatusOr<v1::TokenizeResponse> Tokenize(const RequestLimits& limits, CallRecord& record,
                                              const v1::TokenizeRequest& request);

}  // namespace longshort
