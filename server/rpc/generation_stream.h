// The work of a call that streams a generation: what the engine says waits in StreamEvents, where it is merged, while a
// message is on its way.
//
// A client that reads more slowly than its tokens come pauses the work: while more than 256 KiB wait, the engine
// generates nothing for this stream, so it holds no more than that and what one step yields (and what the request
// echoes and describes of its prompt). A stream that is silent for the keepalive interval says that it is alive.
//
// Thread-safe: the engine's threads push, a delivery thread begins the writes, gRPC's threads react.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/delivery_threads.h"
#include "server/admission/generation_sink.h"
#include "server/admission/stream_events.h"
#include "server/rpc/call.h"

namespace longshort {

class GenerationStream final : public CallWork, public GenerationSink {
 public:
  // The messages of a front's contract. One for each call.
  class Messages {
   public:
    virtual ~Messages() = default;
    // What the request asks for; valid as long as the request.
    virtual GenerateCall Read(const google::protobuf::Message& request) = 0;
    // An event as a message. Called in their order, with the call's mutex held.
    virtual absl::StatusOr<grpc::ByteBuffer> Write(StreamEvent event) = 0;
  };

  GenerationStream(Call& call, std::unique_ptr<Messages> messages);

  // Of GenerationSink. Keepalives run from Open on. Push begins the write itself only if the delivery thread is far
  // behind. After Close what waits is written, unless the client is gone; then the call ends.
  void Open(int32_t completions, StreamStart start) override;
  void Submitted(bool taken) override;
  void Push(StreamEvent event) override;
  void Close(const absl::Status& status) override;

 private:
  // Of CallWork.
  absl::Status Take(google::protobuf::Message& request) override;
  void Cancel(const absl::Status& /*reason*/) override { call_.record().Cancel(); }
  void Look(absl::Time now) override;
  bool HasWork() const override { return in_work_; }
  std::optional<grpc::ByteBuffer> NextAnswer() override;

  // Has the delivery thread call Advance. With the mutex held.
  void AdvanceLater();
  // Pauses the work or lets it go on, as what waits behind a message on its way says. With the mutex held.
  void SetPause(size_t waiting_bytes);

  Call& call_;
  DeliveryThread& delivery_;
  const absl::Duration keepalive_interval_;
  const std::unique_ptr<Messages> messages_;

  // Call::mutex() guards what follows.
  std::optional<StreamEvents> events_;  // none once nobody is to hear of them
  bool in_work_ = false;                // opened, and not closed
  bool submitted_ = false;              // what is pushed waits for it
  bool scheduled_ = false;              // the delivery thread has not come to it yet
  absl::Time last_write_;               // when it began
};

}  // namespace longshort
