#include "server/transports/grpc_1_51/arrival_pace.h"

#include <algorithm>

namespace longshort::server {
namespace {

// The time after an abuse in which an address is paced.
constexpr absl::Duration kPaced = absl::Seconds(10);
// An abusive connection costs up to 30 ms of a processor; one with many calls up to 70 ms, during which gRPC delays the
// calls of others; and one that stalls two seconds.
constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr absl::Duration kPauseForCalls = absl::Milliseconds(500);
constexpr absl::Duration kAfterStall = absl::Seconds(5);
constexpr absl::Duration kLongestWait = absl::Seconds(10);
// Fewer addresses than these can abuse within kPaced.
constexpr size_t kMaxAddresses = 4096;

}  // namespace

void ArrivalPace::Abused(std::string_view address, AbuseKind why, absl::Time now) {
  auto found = addresses_.find(address);
  if (found == addresses_.end()) {
    if (addresses_.size() >= kMaxAddresses) {
      std::erase_if(addresses_, [&](const auto& one) { return one.second.until <= now; });
    }
    if (addresses_.size() >= kMaxAddresses) return;
    found = addresses_.emplace(std::string(address), Address{.free = now, .until = now, .pause = kPause}).first;
  }
  Address& one = found->second;
  one.until = now + kPaced;
  if (why == AbuseKind::kCalls) one.pause = kPauseForCalls;
  const absl::Duration pause = why == AbuseKind::kStalled ? kAfterStall : one.pause;
  one.free = std::min(std::max(one.free, now) + pause, now + kLongestWait);
}

std::optional<absl::Time> ArrivalPace::Begin(std::string_view address, absl::Time now) {
  if (addresses_.empty()) return now;
  const auto found = addresses_.find(address);
  if (found == addresses_.end()) return now;
  Address& one = found->second;
  if (one.until <= now && one.free <= now) {
    addresses_.erase(found);
    return now;
  }
  if (one.free >= now + kLongestWait) return std::nullopt;
  const absl::Time begin = std::max(one.free, now);
  one.free = begin + one.pause;
  return begin;
}

}  // namespace longshort::server
