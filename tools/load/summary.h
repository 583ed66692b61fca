// The outcomes of calls, and their statistics.
//
// All times count from the run's start on a monotonic clock.
// Calls count if they were planned within [begin, end), whenever they ended. Rates count the answers and tokens that
// arrived within [begin, end), whenever their calls were planned.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/support/status_code_enum.h"

namespace longshort::load {

// The arrival of a message with tokens.
struct TokenArrival {
  absl::Duration at;
  int64_t tokens = 0;  // at least 1; more if the client or the server was busy
};

struct CallOutcome {
  // When the call was due: the planned arrival (open loop), or the time when its caller became free (closed loop).
  absl::Duration planned;
  // When the call was passed to gRPC: later than `planned` if the client itself was late.
  absl::Duration sent;
  absl::Duration ended;
  std::vector<TokenArrival> arrivals;  // of a streaming call, in order of time
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string error;  // the status message; empty if the code is OK
  // This program cancelled the call because the run was over.
  bool cut_off = false;

  int64_t tokens() const {
    int64_t sum = 0;
    for (const TokenArrival& arrival : arrivals) sum += arrival.tokens;
    return sum;
  }
};

// A set of measured durations. It keeps every sample, so percentiles are exact.
//
// Immutable, hence thread-safe.
class Distribution final {
 public:
  Distribution() = default;
  explicit Distribution(std::vector<absl::Duration> samples);

  int64_t count() const { return static_cast<int64_t>(sorted_.size()); }
  // Mean, Max and Percentile return zero if there is no sample.
  absl::Duration Mean() const;
  absl::Duration Max() const { return Percentile(100); }
  // The smallest sample that at least `percent` of the samples do not exceed (nearest rank, no interpolation).
  // REQUIRES: percent in [0, 100].
  absl::Duration Percentile(double percent) const;

 private:
  std::vector<absl::Duration> sorted_;
};

// Latency limits of a call. Infinite: no limit.
struct ServiceObjective {
  // Time from the planned arrival to the first token; for a call without tokens, to the end.
  absl::Duration first_token = absl::InfiniteDuration();
  // Time from the planned arrival to the end.
  absl::Duration total = absl::InfiniteDuration();
};

// Returns whether the call was answered within all limits of `objective`.
bool Meets(const CallOutcome& outcome, const ServiceObjective& objective);

// The events of a run in slices of equal time.
struct Timeline {
  absl::Duration slice;
  std::vector<int64_t> answered;  // calls that ended in the slice
  std::vector<int64_t> refused_or_failed;
  std::vector<int64_t> tokens;            // that arrived in the slice
  std::vector<Distribution> total;        // of answers that ended in the slice
  std::vector<Distribution> first_token;  // of first tokens that arrived in the slice
};

struct Summary {
  absl::Duration measured;  // end - begin

  // sent = answered + refused + failed + cut_off.
  int64_t sent = 0;
  int64_t answered = 0;  // OK
  int64_t refused = 0;   // RESOURCE_EXHAUSTED
  int64_t failed = 0;    // any other code
  int64_t cut_off = 0;   // cancelled by this program when the run was over
  int64_t within_objective = 0;

  double answers_per_second = 0;
  double tokens_per_second = 0;
  double goodput_per_second = 0;  // answers within the objective

  // Time from the planned arrival to the end, by status code, without the calls that were cut off.
  std::map<grpc::StatusCode, Distribution> total;
  std::string first_failure;  // status message of the first call that failed; empty if none did
  Distribution first_token;   // time from the planned arrival
  // Time between consecutive messages with tokens of a call, including stalls.
  Distribution inter_token;
  // Time from the planned arrival until this program sent the request: the delay that the client itself causes.
  Distribution send_delay;
  Timeline timeline;
};

Summary Summarise(absl::Span<const CallOutcome> outcomes, absl::Duration begin, absl::Duration end,
                  const ServiceObjective& objective);

}  // namespace longshort::load
