// Writes a streamed generation, in any protocol's messages. While a write is pending, the engine's events wait in
// StreamEvents, which merges them.
//
// Generation pauses while the client reads too slowly: while more than 256 KiB wait, the engine generates nothing for
// this stream. The pause ends when the client has read the pending message; otherwise the write timer ends the call. So
// the stream holds at most that, one step's output, and the echo and description of the prompt. A stream that is silent
// for the keepalive interval sends a keepalive.
//
// Thread-safe: the engine's threads push, a delivery thread begins the writes, the transport's threads react.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/call/call.h"
#include "server/call/rpc.h"
#include "server/call/stream_events.h"

namespace longshort::server {

class GenerationStream : public CallWork, public GenerationSink {
 public:
  explicit GenerationStream(Call& call);

  // GenerationSink: keepalives start with Open. Push writes itself only if the delivery thread is far behind. After
  // Close the waiting events are written, unless the client is gone; then the call ends.
  void Open(int32_t completions, StreamStart start) override;
  void Submitted(bool taken) override;
  void Push(StreamEvent event) override;
  void Close(const absl::Status& status) override;

 protected:
  // This, as the sink of GenerateStream.
  std::shared_ptr<GenerationSink> Sink() { return std::shared_ptr<GenerationSink>(call_.shared_from_this(), this); }

  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return in_work_; }
  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex());

  Call& call_;

 private:
  // The answer for an event; nullopt if the protocol has none for it. REQUIRES: the call's mutex is held.
  virtual absl::StatusOr<std::optional<CallAnswer>> ToAnswer(StreamEvent event) = 0;

  // CallWork:
  void Cancel(const absl::Status& /*reason*/) override { call_.record().Cancel(); }
  void OnTimer(absl::Time now) override;

  const absl::Duration keepalive_interval_;

  std::optional<StreamEvents> events_ ABSL_GUARDED_BY(call_.mutex());  // unset once the client can receive nothing
  bool in_work_ ABSL_GUARDED_BY(call_.mutex()) = false;                // opened and not closed
  bool submitted_ ABSL_GUARDED_BY(call_.mutex()) = false;              // until then events wait
  absl::Time last_write_ ABSL_GUARDED_BY(call_.mutex());               // when the last write began
};

}  // namespace longshort::server
