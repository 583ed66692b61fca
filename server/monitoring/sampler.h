// Which traces are recorded.
#pragma once

#include <cstdint>
#include <optional>

#include "server/monitoring/trace_context.h"

namespace longshort {

class Sampler final {
 public:
  // A trace that begins here is recorded with the probability `ratio`, in [0, 1]. `parent_based`: one that came from
  // elsewhere is recorded if it is there; otherwise all are treated alike.
  Sampler(double ratio, bool parent_based);

  // The trace id alone decides, so servers with one ratio decide alike, and one with a higher ratio records what one
  // with a lower does: its last 7 bytes, as a number, against the part of 2^56 that is not recorded (OpenTelemetry's
  // consistent probability sampling).
  bool Samples(const TraceId& id, const std::optional<TraceContext>& parent) const;

 private:
  const bool parent_based_;
  const uint64_t first_sampled_;
};

}  // namespace longshort
