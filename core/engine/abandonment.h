// Whether somebody still waits for a request.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/engine/request.h"

namespace longshort {

// OK while somebody waits for the result at `now`. `started`: whether it runs already, for the message.
// Errors: CANCELLED, DEADLINE_EXCEEDED; then the request should be ended with it.
absl::Status WhyAbandoned(const RequestContext& context, absl::Time now, bool started);

}  // namespace longshort
