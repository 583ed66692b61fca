#include "clients/cpp/retry_delay.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "base/random_number.h"
#include "clients/cpp/exit_code.h"

namespace longshort {
namespace {

constexpr absl::Duration kFirst = absl::Milliseconds(500);
constexpr absl::Duration kLongest = absl::Seconds(10);

// In [0, 1).
double Draw() { return std::ldexp(static_cast<double>(RandomNumber() >> 11U), -53); }

}  // namespace

bool MayPass(const absl::Status& status) {
  // What gRPC says of a handshake that another try will not change.
  constexpr std::array kHopeless = {"CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER",
                                    "Hostname Verification Check failed"};
  return ExitCodeOf(status) == ExitCode::kUnavailable &&
         std::none_of(kHopeless.begin(), kHopeless.end(),
                      [&](const char* reason) { return absl::StrContains(status.message(), reason); });
}

absl::Duration RetryDelay::Next(std::optional<absl::Duration> told) {
  const absl::Duration backoff = std::min(kLongest, kFirst * std::exp2(std::min(failures_++, 10)));
  const double draw = Draw();
  if (!told.has_value()) return backoff * ((1 + draw) / 2);
  return *told + draw * std::min(backoff, 0.1 * *told);
}

}  // namespace longshort
