// Which connections take without giving: what the HTTP/2 of gRPC 1.51 does not bound, seen from outside of it.
//
// A connection is looked at a few times a second. Three things end it:
//
//   kCalls    It has far more calls in memory than it may open: its client does not heed the server's settings, or
//             resets calls faster than they can be taken apart ("rapid reset").
//   kBytes    Much came, and no message of it: frames without content, headers without end. A message that is still on
//             its way is no offence, so each open call may have one; neither is what a client says because the server
//             sends (window updates).
//   kStalled  Its bytes have waited all the time to be read, and nothing came of those that were: reading them takes
//             processor time out of proportion, and others' calls wait for it.
//
// Thread: one thread at a time. Plain arithmetic: no sockets, no gRPC.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace longshort::server {

enum class AbuseKind { kCalls, kBytes, kStalled };

// As metrics and the log call it: "calls", "bytes", "stalled".
const char* AbuseKindName(AbuseKind abuse);

struct AbuseLimits {
  // Calls of a connection in memory: those that it may open, and ended ones that are not taken apart yet.
  int64_t calls = 4096;
  // What may come without a message. gRPC lets 16 MiB come before it must say anything.
  int64_t idle_bytes = int64_t{64} << 20;
  // The largest message, and what messages on their way may have together. Each open call may have one.
  int64_t message_bytes = int64_t{8} << 20;
  int64_t messages_bytes = int64_t{256} << 20;
  // For so long bytes may wait to be read, while nothing comes of others that are read: so many at least. Where none
  // are read, the server has no time for its clients.
  absl::Duration stall = absl::Seconds(2);
  int64_t stall_bytes = int64_t{256} << 10;
};

// What the system knows of a connection, since its beginning.
struct ConnectionBytes {
  int64_t received = 0;  // from the client, read or not
  int64_t unread = 0;    // of these, still to be read
  int64_t taken = 0;     // of what was sent to the client, what it has
};

// What gRPC knows of it.
struct ConnectionCalls {
  int64_t open = 0;      // in memory, ended ones included
  int64_t messages = 0;  // that came whole, since its beginning
};

class AbuseDetector final {
 public:
  // Whether enough came since the last Judge that ConnectionCalls must be known; asking gRPC takes some microseconds.
  bool WantsCalls(const ConnectionBytes& bytes) const;

  // Judges one look. `calls`: nothing if gRPC does not know the connection (yet, or any more).
  std::optional<AbuseKind> Judge(absl::Time now, const ConnectionBytes& bytes,
                                 const std::optional<ConnectionCalls>& calls, const AbuseLimits& limits);

  // Since the last message: bytes that came without one.
  int64_t idle_bytes() const { return last_.received - at_message_.received; }

 private:
  bool IsStalled(absl::Time now, const AbuseLimits& limits);

  ConnectionBytes last_;
  ConnectionBytes at_message_;    // when the last message had come
  int64_t received_at_sign_ = 0;  // when something had come of it last: a message, or whatever is sent to the client
  int64_t messages_ = 0;
  std::optional<absl::Time> waits_since_;  // since then bytes wait to be read, and nothing came of those that were
  int64_t read_at_wait_ = 0;
};

}  // namespace longshort::server
