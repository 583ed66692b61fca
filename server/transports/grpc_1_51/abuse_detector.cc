#include "server/transports/grpc_1_51/abuse_detector.h"

#include <algorithm>

namespace longshort::server {
namespace {

// Fewer bytes cannot carry a harmful number of calls: a call has at least 16 bytes.
constexpr int64_t kUnsuspicious = int64_t{32} << 10;
// Bytes that gRPC allows a stream while the rest of a message is missing: 1 MiB, and the first window.
constexpr int64_t kWindowOfCall = (int64_t{1} << 20) + (int64_t{64} << 10);

}  // namespace

const char* AbuseKindName(AbuseKind abuse) {
  switch (abuse) {
    case AbuseKind::kCalls:
      return "calls";
    case AbuseKind::kBytes:
      return "bytes";
    case AbuseKind::kPings:
      return "pings";
    case AbuseKind::kStalled:
      return "stalled";
    case AbuseKind::kRoom:
      return "room";
    case AbuseKind::kPace:
      return "pace";
  }
  return "";
}

bool AbuseDetector::WantsCalls(const ConnectionBytes& bytes) const {
  return bytes.received - last_.received >= kUnsuspicious || bytes.received - at_message_.received >= kUnsuspicious;
}

std::optional<AbuseKind> AbuseDetector::Judge(const PollTime& time, const ConnectionBytes& bytes,
                                              const std::optional<ConnectionCalls>& calls, const AbuseLimits& limits) {
  const bool sent = bytes.taken > last_.taken;
  const bool message = calls.has_value() && calls->messages > messages_;
  last_ = bytes;
  if (message) {
    messages_ = calls->messages;
    at_message_ = bytes;
    begun_at_message_ = calls->begun;
  }
  // A call that was open the last time may have received bytes since.
  const bool has_call = !calls.has_value() || calls->open > 0 || calls->begun > begun_ || open_ > 0;
  // Unread bytes may begin a call.
  const int64_t read = bytes.received - bytes.unread;
  if (has_call || message) read_at_call_ = read;
  if (calls.has_value()) begun_ = calls->begun;
  if (calls.has_value()) open_ = calls->open;
  if (message || sent) {
    read_at_sign_ = read;
    open_at_sign_ = open_;
    begun_at_sign_ = begun_;
  }
  if (message || sent || bytes.unread == 0) waits_since_.reset();

  if (calls.has_value() && calls->open > limits.calls) return AbuseKind::kCalls;
  if (begun_ - begun_at_message_ > 2 * limits.calls) return AbuseKind::kCalls;
  const int64_t open = calls.has_value() ? calls->open : limits.calls;
  const int64_t on_their_way = std::min(open * limits.message_bytes, limits.messages_bytes);
  if (calls.has_value() && unanswered_bytes() > limits.idle_bytes + on_their_way) return AbuseKind::kBytes;
  // An uploading client also needs window updates from the server, so it cannot continue for long without any. A call
  // that has ended since then may have filled its window, too.
  const int64_t had_windows = std::max(open, open_at_sign_ + begun_ - begun_at_sign_);
  const int64_t windows = std::min(had_windows * kWindowOfCall, limits.messages_bytes);
  if (read - read_at_sign_ > limits.silent_bytes + windows) return AbuseKind::kBytes;
  if (read - read_at_call_ > limits.bytes_without_call) return AbuseKind::kPings;
  if (IsStalled(time, limits)) return AbuseKind::kStalled;
  return std::nullopt;
}

bool AbuseDetector::IsStalled(const PollTime& time, const AbuseLimits& limits) {
  if (last_.unread == 0) return false;
  const int64_t read = last_.received - last_.unread;
  if (!waits_since_.has_value()) {
    waits_since_ = time;
    read_at_wait_ = read;
  }
  if (time.now - waits_since_->now >= limits.unread_stall && last_.unsent > 0) return true;
  return time.cpu - waits_since_->cpu >= limits.stall && read - read_at_wait_ >= limits.stall_bytes;
}

}  // namespace longshort::server
