// When a server that failed is asked again.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longshort {

// Whether asking again, later, may do: nobody answers, the connection broke, the server stops or is full. Not a
// certificate that is not trusted, nor a message that is too large.
bool MayPass(const absl::Status& status);

// The waits between the tries at one server: half a second at first, twice as long after each failure, ten seconds at
// the most. What is waited is between half of that and all of it, so that clients that failed together do not come back
// together.
class RetryDelay final {
 public:
  // After one more failure in a row. `told`: how long the server wants to be left alone, which is never cut.
  absl::Duration Next(std::optional<absl::Duration> told);
  // The server answered: what fails later is a new failure.
  void Reset() { failures_ = 0; }

 private:
  int failures_ = 0;
};

}  // namespace longshort
