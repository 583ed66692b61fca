// A run: sends the requests of all workloads for a given time and keeps what became of each.
//
// Open loop: one thread a workload sleeps until the next planned arrival and sends, whatever is still unanswered. A
// latency counts from the planned arrival, so that a client that comes late, or requests that wait behind others,
// cannot hide (no coordinated omission).
// Closed loop: each caller sends its next request in the callback that brought its last answer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "tools/load/call_outcome.h"
#include "tools/load/workload.h"

namespace longshort::load {

struct RunOptions {
  // Requests are sent for warm_up + measured.
  absl::Duration warm_up = absl::Seconds(1);
  absl::Duration measured = absl::Seconds(10);
  // How long calls may go on afterwards before they are cut off.
  absl::Duration grace = absl::Seconds(10);
  uint64_t seed = 1;
};

struct RunResult {
  // The time that figures are taken of: [begin, end). It ends early if all requests that were asked for are answered.
  absl::Duration begin;
  absl::Duration end;
  // By workload; in the order in which the calls ended, those of the warm-up included.
  std::vector<std::vector<CallOutcome>> outcomes;
};

// Spreads calls over `channels` in turn. Returns when every call has ended, at the latest a moment after warm_up +
// measured + grace. Errors: as RequestSource::Create.
absl::StatusOr<RunResult> RunLoad(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                                  const std::vector<Workload>& workloads, const RunOptions& options);

}  // namespace longshort::load
