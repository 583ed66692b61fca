// What a run's outcomes say, in figures. Pure: no clock, no server.
//
// Which calls count: those planned within [begin, end), whenever they ended; "per second" counts what arrived within
// it, from whatever call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/support/status_code_enum.h"
#include "tools/load/call_outcome.h"

namespace longshort::load {

// Durations as they were measured, every one kept: percentiles are exact.
//
// Immutable: any thread may use it.
class Distribution final {
 public:
  Distribution() = default;
  explicit Distribution(std::vector<absl::Duration> samples);

  int64_t count() const { return static_cast<int64_t>(sorted_.size()); }
  // Zero if there is no sample; so are all below.
  absl::Duration Mean() const;
  absl::Duration Max() const { return Percentile(100); }
  // The smallest sample that at least `percent` of all samples are not above (the nearest rank; never a mean of two).
  // REQUIRES: percent in [0, 100].
  absl::Duration Percentile(double percent) const;

 private:
  std::vector<absl::Duration> sorted_;
};

// What a client asks of a call to be content; infinite: nothing.
struct ServiceObjective {
  // From the planned arrival to the first token (without tokens: to the end).
  absl::Duration first_token = absl::InfiniteDuration();
  // The mean time of a token after the first.
  absl::Duration token = absl::InfiniteDuration();
  // From the planned arrival to the end.
  absl::Duration total = absl::InfiniteDuration();
};

// Whether the call was answered and kept to all of it.
bool Meets(const CallOutcome& outcome, const ServiceObjective& objective);

// The run in slices of equal time.
struct Timeline {
  absl::Duration slice;
  std::vector<int64_t> answered;  // by the time they ended
  std::vector<int64_t> refused_or_failed;
  std::vector<int64_t> tokens;            // by the time they arrived
  std::vector<Distribution> total;        // of answers, by the time they ended
  std::vector<Distribution> first_token;  // by the time it arrived
};

struct Summary {
  absl::Duration measured;  // end - begin

  // sent = answered + refused + failed + cut_off.
  int64_t sent = 0;
  int64_t answered = 0;  // OK
  int64_t refused = 0;   // RESOURCE_EXHAUSTED
  int64_t failed = 0;    // any other code
  int64_t cut_off = 0;   // by this program, when the run was over
  int64_t within_objective = 0;

  double answers_per_second = 0;
  double tokens_per_second = 0;
  double goodput_per_second = 0;  // answers within the objective

  // From the planned arrival to the end, by code; cut-off calls are left out.
  std::map<grpc::StatusCode, Distribution> total;
  std::string first_failure;  // what the server said of the first that failed; empty if none did
  Distribution first_token;   // from the planned arrival
  // Between two messages that bring tokens, of whatever call: what a reader sees, stalls included.
  Distribution inter_token;
  // How late this program sent: a client without processor time measures itself.
  Distribution send_delay;
  Timeline timeline;
};

Summary Summarise(absl::Span<const CallOutcome> outcomes, absl::Duration begin, absl::Duration end,
                  const ServiceObjective& objective);

}  // namespace longshort::load
