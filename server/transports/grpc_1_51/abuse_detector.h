// Detects connections that abuse HTTP/2 in ways that gRPC 1.51 does not limit, from outside of gRPC.
//
// The guard checks a connection fifty times a second. Four kinds of abuse end it:
//
//   kCalls    It has far more calls in memory than it may open: its client ignores the server's settings, or resets
//             calls faster than gRPC can destroy them ("rapid reset"). Or it opens calls and never sends a message.
//   kBytes    It received many bytes without completing a message: frames without content, or headers without an end.
//             Each open call may have an incomplete message, and window updates for the server's data do not count.
//             Fewer are enough while the server sends nothing, since an upload needs window updates.
//   kPings    It received many bytes without a call: pings, settings, and other frames that gRPC answers. No call ends
//             with the connection.
//   kStalled  Its receive buffer has not been empty for some time, during which no message was completed. Parsing costs
//             too much CPU, which delays other clients' calls; or gRPC has stopped reading, because the client does not
//             read its 10,000 answers to such frames. The first is measured in CPU time of the server: on a busy
//             machine an upload takes long, too, but not much of it.
//
// Thread: one thread at a time. Arithmetic only: no sockets, no gRPC.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/time/time.h"

namespace longshort::server {

// The last two are no abuse by themselves: the connection makes room for another one, or too many new ones of an
// abusive address wait (ArrivalPace).
enum class AbuseKind { kCalls, kBytes, kPings, kStalled, kRoom, kPace };

// The name in metrics and the log: "calls", "bytes", "pings", "stalled", "room", "pace".
const char* AbuseKindName(AbuseKind abuse);

struct AbuseLimits {
  // Maximum connections of all clients.
  int64_t connections = 4096;
  // What each takes in memory without its calls.
  int64_t connection_bytes = 0;
  // Maximum calls of a connection in memory: open ones, and ended ones that are not destroyed yet. Twice as many may
  // begin without a message between them.
  int64_t calls = 2048;
  // Maximum bytes received without a message.
  int64_t idle_bytes = int64_t{64} << 20;
  // The same of all connections together. Only those with some bytes count.
  int64_t all_idle_bytes = std::numeric_limits<int64_t>::max();
  // Maximum bytes read while the server sent nothing, beyond the windows of open calls: the heads of calls. gRPC
  // must not probe for larger windows (GRPC_ARG_HTTP2_BDP_PROBE).
  int64_t silent_bytes = int64_t{256} << 10;
  // Maximum calls of all connections that no service has begun, because their first message has not arrived.
  int64_t calls_not_begun = std::numeric_limits<int64_t>::max();
  // Maximum calls of a client that services refuse in a second. Beyond it, the guard pauses the client's connections in
  // turn, each for at most `longest_pause`. gRPC or the system ends a connection that acknowledges nothing for longer.
  int64_t refused_calls = 4096;
  absl::Duration longest_pause = absl::Seconds(15);
  // The largest message, and the maximum bytes of all incomplete messages together. Each open call may have one.
  int64_t message_bytes = int64_t{8} << 20;
  int64_t messages_bytes = int64_t{256} << 20;
  // Maximum bytes read while no call is open and none begins. Clients' pings and window updates are far fewer.
  int64_t bytes_without_call = int64_t{128} << 10;
  // A connection is stalled if its receive buffer has not been empty while the server used `stall` of CPU time and
  // read at least `stall_bytes` from it without completing anything. If fewer were read, others use the CPU.
  absl::Duration stall = absl::Seconds(2);
  int64_t stall_bytes = int64_t{256} << 10;
  // It is also stalled if its receive buffer has not been empty for so long, while the client took nothing of what
  // waits to be sent.
  absl::Duration unread_stall = absl::Seconds(10);
};

// The system's byte counts of a connection, since it was opened.
struct ConnectionBytes {
  int64_t received = 0;  // from the client, including unread ones
  int64_t unread = 0;    // of these, not read yet
  int64_t taken = 0;     // sent to the client and acknowledged by it
  int64_t unsent = 0;    // accepted from gRPC, not sent yet
};

// gRPC's counts of a connection.
struct ConnectionCalls {
  int64_t begun = 0;     // since it was opened
  int64_t open = 0;      // in memory, including ended ones
  int64_t messages = 0;  // complete ones, since it was opened
};

// When the counts are read.
struct PollTime {
  absl::Time now;
  absl::Duration cpu;  // used by the server since its start
};

class AbuseDetector final {
 public:
  // Whether Judge needs ConnectionCalls, because many bytes were received since its last call. Reading them from gRPC
  // takes some microseconds.
  bool WantsCalls(const ConnectionBytes& bytes) const;

  // Judges the current counts. `calls`: nullopt if gRPC does not know the connection (not yet, or no longer).
  std::optional<AbuseKind> Judge(const PollTime& time, const ConnectionBytes& bytes,
                                 const std::optional<ConnectionCalls>& calls, const AbuseLimits& limits);

  // Bytes received since the last complete message.
  int64_t idle_bytes() const { return last_.received - at_message_.received; }
  // The same without a client's replies to the server's data, such as window updates, which are less than half of that
  // data.
  int64_t unanswered_bytes() const { return idle_bytes() - (last_.taken - at_message_.taken) / 2; }

 private:
  bool IsStalled(const PollTime& time, const AbuseLimits& limits);

  ConnectionBytes last_;
  ConnectionBytes at_message_;  // at the last complete message
  int64_t open_ = 0;            // calls, when they were last known
  int64_t read_at_sign_ = 0;    // at the last progress: a message, or data sent to the client
  int64_t open_at_sign_ = 0;
  int64_t begun_at_sign_ = 0;
  int64_t messages_ = 0;
  int64_t begun_ = 0;
  int64_t begun_at_message_ = 0;
  int64_t read_at_call_ = 0;             // when a call was last open or had begun
  std::optional<PollTime> waits_since_;  // start of the current stall
  int64_t read_at_wait_ = 0;
};

}  // namespace longshort::server
