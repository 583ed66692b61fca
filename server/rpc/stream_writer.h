// The writing end of a stream of gRPC's callback API: at most one message is on its way; what comes meanwhile waits in
// StreamEvents, where it is merged. Nobody ever blocks.
//
// Ownership is shared, because two sides let go in either order: gRPC (until OnDone) and the engine, whose listeners
// hold the stream until they have been told the end. gRPC is told the final status only after the engine is through
// with the call.
//
// Thread-safe: the engine's threads push, gRPC's threads react, a timer keeps alive.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/rpc/call_record.h"
#include "server/rpc/stream_events.h"

namespace longshort {

class StreamWriter final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                           public std::enable_shared_from_this<StreamWriter> {
 public:
  // gRPC holds a reference from now on, until OnDone.
  static std::shared_ptr<StreamWriter> Make(const CallEnvironment& environment, const char* rpc,
                                            grpc::CallbackServerContext* context);

  // Has `add` put something into the events, and writes it as soon as the one before is written.
  void Push(const std::function<void(StreamEvents&)>& add);

  // Begins the stream: how many completions it has, and its first message. Keepalives run from now on. Before any Push.
  void Open(int32_t completions, v1::StreamStart start);

  // Nothing is pushed any more. What waits is written (unless the client is gone); then the call ends with `status`.
  // Once, and always: a stream that is never closed never ends.
  void Close(const absl::Status& status);

  // Add to the record before Close only.
  CallRecord& record() { return record_; }

 private:
  StreamWriter(const CallEnvironment& environment, const char* rpc, grpc::CallbackServerContext* context);

  void OnWriteDone(bool ok) override;
  void OnCancel() override { record_.Cancel(); }
  void OnDone() override { grpc_reference_.reset(); }

  // Writes the next message, or ends the call, if it is time for either.
  void Advance();
  // Sets the timer for the moment when the stream will have been silent long enough. With the mutex held.
  void SetKeepAlive();
  void OnKeepAlive();

  CallRecord record_;
  const absl::Duration keepalive_interval_;
  std::shared_ptr<StreamWriter> grpc_reference_;

  std::mutex mutex_;  // guards what follows
  std::optional<StreamEvents> events_;
  grpc::ByteBuffer on_its_way_;
  bool writing_ = false;
  bool reader_gone_ = false;
  std::optional<absl::Status> closed_;
  bool finished_ = false;
  absl::Time last_write_;
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace longshort
