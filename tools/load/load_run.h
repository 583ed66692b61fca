// A run: sends the requests of all workloads for a given time and records the outcome of each.
//
// Open loop: one thread per workload sleeps until the next planned arrival and sends, however many calls are
// unanswered. Latency counts from the planned arrival, so it includes the time that a request waits behind others or
// in a late client (no coordinated omission).
// Closed loop: each caller sends its next request in the callback that received its last answer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "tools/load/summary.h"
#include "tools/load/workload.h"

namespace longshort::load {

struct RunOptions {
  // Requests are sent for warm_up + measured.
  absl::Duration warm_up = absl::Seconds(1);
  absl::Duration measured = absl::Seconds(10);
  // Time after the measurement in which calls may finish. The rest is then cancelled.
  absl::Duration grace = absl::Seconds(10);
  uint64_t seed = 1;
};

struct RunResult {
  // The measured interval [begin, end). It ends early if every workload limits its requests and all are answered.
  absl::Duration begin;
  absl::Duration end;
  // For each workload: the outcomes in the order in which the calls ended, including those of the warm-up.
  std::vector<std::vector<CallOutcome>> outcomes;
};

// Spreads the calls over `channels` in turn. Returns when every call has ended, soon after warm_up + measured + grace
// at most. Errors: those of RequestSource::Create.
absl::StatusOr<RunResult> RunLoad(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                                  const std::vector<Workload>& workloads, const RunOptions& options);

}  // namespace longshort::load
