// The writing end of a stream of gRPC's callback API: at most one message is on its way; what comes meanwhile waits in
// StreamEvents, where it is merged. Nobody ever blocks.
//
// A client that reads more slowly than its tokens come pauses the work: while more than 256 KiB wait, the engine
// generates nothing for this stream, so it holds no more than that and what one step yields (and what the request
// echoes and describes of its prompt). A client that takes no message at all for the slow reader's timeout is
// cancelled.
//
// Ownership is shared, because two sides let go in either order: gRPC (until OnDone) and the engine, whose listeners
// hold the stream until they have been told the end. gRPC is told the final status only after the engine is through
// with the call.
//
// Thread-safe: the engine's threads push, a delivery thread begins the writes, gRPC's threads react, a timer keeps
// alive and looks after the reader.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/delivery_threads.h"
#include "server/admission/generation_sink.h"
#include "server/admission/stream_events.h"
#include "server/admission/write_watch.h"
#include "server/rpc/rpc_call.h"

namespace longshort {

// An event as the message of a front's contract. Called for one event of a stream at a time, in their order.
using SerializeEvent = std::function<absl::StatusOr<grpc::ByteBuffer>(StreamEvent event)>;

class StreamWriter final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                           public GenerationSink,
                           public std::enable_shared_from_this<StreamWriter> {
 public:
  // gRPC holds a reference from now on, until OnDone.
  static std::shared_ptr<StreamWriter> Make(const CallEnvironment& environment, const CallNames& names,
                                            grpc::CallbackServerContext* context, SerializeEvent serialize);

  // Keepalives run from now on.
  void Open(int32_t completions, StreamStart start) override;

  void Submitted(bool taken) override;

  // The event is written as soon as what is before it is written. Begins the write itself only if the delivery thread
  // is far behind.
  void Push(StreamEvent event) override;

  // What waits is written (unless the client is gone); then the call ends with `status`.
  void Close(const absl::Status& status) override;

  // Add to the record before Close only.
  CallRecord& record() { return call_.record(); }

 private:
  StreamWriter(const CallEnvironment& environment, const CallNames& names, grpc::CallbackServerContext* context,
               SerializeEvent serialize);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { record().Cancel(); }
  void OnDone() override { grpc_reference_.reset(); }

  // Has the delivery thread call Advance. With the mutex held.
  void ScheduleAdvance();
  // Writes the next message, or ends the call, if it is time for either.
  void Advance();
  // Puts the next message where StartWrite takes it. False if there is none now. With the mutex held.
  bool TakeNext();
  // Pauses the work or lets it go on, as what waits says. With the mutex held.
  void SetPause();
  // Sets the timer for the moment when the stream will have been silent, or its reader slow, for long enough. With the
  // mutex held.
  void SetTimer(absl::Time now);
  void OnTimer();

  RpcCall call_;
  DeliveryThread& delivery_;
  const absl::Duration keepalive_interval_;
  std::shared_ptr<StreamWriter> grpc_reference_;

  std::mutex mutex_;  // guards what follows
  SerializeEvent serialize_;
  std::optional<StreamEvents> events_;  // none once nobody is to hear of them
  grpc::ByteBuffer on_its_way_;
  WriteWatch watch_;
  bool submitted_ = false;   // what is pushed waits for it
  bool scheduled_ = false;   // the delivery thread has not come to it yet
  bool cancelling_ = false;  // the timer's thread uses the call: it is not finished under it
  std::optional<absl::Status> closed_;
  bool finished_ = false;
  absl::Time last_write_;  // when it began
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace longshort
