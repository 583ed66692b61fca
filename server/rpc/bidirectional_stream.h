// A call whose client sends messages and reads answers: what every such call does beside its work. At most one read and
// one write are on their way. Nobody ever blocks.
//
// A client that takes no answer for the slow reader's timeout while one waits for it is cancelled. A stop of the server
// ends the reading; what is in work is answered.
//
// Ownership is shared, because two sides let go in either order: gRPC (until OnDone) and the work, which holds the
// stream until it has told its end.
//
// Thread-safe: gRPC's threads read and write, the engines' answer.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/write_watch.h"
#include "server/rpc/rpc_call.h"

namespace longshort {

class BidirectionalStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public std::enable_shared_from_this<BidirectionalStream> {
 public:
  ~BidirectionalStream() override;

  // Admits the call and begins to read, or ends it. gRPC holds a reference from now on, until OnDone.
  static BidirectionalStream* Start(const std::shared_ptr<BidirectionalStream>& stream);

 protected:
  BidirectionalStream(const CallEnvironment& environment, const CallNames& names, grpc::CallbackServerContext* context);

  // Begins what it is time for: a write, a read, the end of the call.
  void Advance();
  // Ends the call with `status` (the first one counts): nothing more is read; what was answered is written.
  void End(const absl::Status& status);

  const CallEnvironment& environment() const { return environment_; }
  CallRecord& record() { return call_.record(); }

  std::mutex& mutex() { return mutex_; }
  // With the mutex held:
  bool writing() const { return watch_.writing(); }
  // Whether answers are lost.
  bool reader_gone() const { return reader_gone_; }
  // Whether the call may still end well.
  bool is_well() const { return !ended_.has_value() || ended_->ok(); }
  void NoteEnd(const absl::Status& status);

 private:
  // The work.
  //
  // Takes a message. One at a time. Errors end the call.
  virtual absl::Status Take(const grpc::ByteBuffer& message) = 0;
  // Nobody waits for an answer any more.
  virtual void Cancel() = 0;
  // With the mutex held: whether there is room for what another message asks for.
  virtual bool HasRoom() const = 0;
  // With the mutex held: the next answer; nothing if there is none now, or the reader is gone.
  virtual std::optional<grpc::ByteBuffer> NextAnswer() = 0;
  // With the mutex held: that answer was written, or lost.
  virtual void Written() {}
  // With the mutex held: whether answers are still to come.
  virtual bool HasWork() const = 0;
  // With the mutex held: whether work waits to begin; and that it never will, since the call ends with an error.
  virtual bool HasHeld() const { return false; }
  virtual void DropHeld() {}

  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final { grpc_reference_.reset(); }

  // Looks after the client's reading from now on, as long as a message is on its way. With the mutex held.
  void WatchReader(absl::Time now);
  void LookAfterReader();
  // An idle client must not keep a stopping server. The call ends well only if it had ended before.
  void OnStopping();

  const CallEnvironment& environment_;
  RpcCall call_;
  std::shared_ptr<BidirectionalStream> grpc_reference_;
  int64_t gate_watch_ = 0;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;

  std::mutex mutex_;  // guards what follows
  CallGate::IdleNote idle_;
  std::optional<absl::Status> ended_;  // nothing more is read: OK after the client's half-close
  int64_t busy_ = 0;                   // threads that take a message, begin a read or write, or cancel: the call is
                                       // not finished under them
  bool reading_ = false;
  WriteWatch watch_;
  std::unique_ptr<grpc::Alarm> look_;  // set while the client's reading is looked after
  bool reader_gone_ = false;
  bool finished_ = false;
};

}  // namespace longshort
