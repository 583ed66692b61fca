// A text as token ids, or ids checked. Answered at once, without the engine.
#pragma once

#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/calls/tokenize_call.h"

namespace longshort {

absl::StatusOr<TokenizeResult> Tokenize(CallRecord& record, const TokenizeCall& call);

}  // namespace longshort
