// One call: reads the client's messages, writes answers, and ends once. Its CallWork processes the messages. A
// unary call is a stream of one message and one answer, which is sent with the status.
//
// - At most one read and one write are pending. No function blocks.
// - A stream reads only while its work has room, so its memory is bounded whatever the client does.
// - The call ends when nothing is left to read (the client half-closed, or there was an error), no work is pending, and
//   no thread is busy with the call. The first error is its status.
// - A message that takes long to read is read by a thread of CallEnvironment::work, in the clients' order.
// - A client that does not take a pending answer within --slow-reader-timeout is cancelled. UnreadAnswers watches an
//   answer that is sent with the status.
// - CallGate ends a stream that would otherwise hold up the server's stop.
//
// Ownership is shared, because either side may release the call first: gRPC (until Done), or the engines, whose
// listeners hold the call until they are notified of the end.
//
// Thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/alarm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/call/call_record.h"
#include "server/call/delivery_threads.h"
#include "server/call/rpc.h"
#include "server/call/unread_answers.h"

namespace longshort::server {

class Call : public std::enable_shared_from_this<Call> {
 public:
  virtual ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  CallRecord& record() { return record_; }
  const CallEnvironment& environment() const { return record_.environment(); }

  // Begins what is due: a write, a read, or the end of the call.
  void Advance();
  // Ends the call with `status`; the first error wins. No further message is read. Pending answers are written.
  void End(const absl::Status& status);
  // As End, for a call whose client may not be reading: aborts a pending write, which would delay the end.
  void EndNow(const absl::Status& status);

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  bool writing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return write_timer_.writing(); }
  // Whether a write has failed, so that further answers are lost.
  bool reader_gone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return reader_gone_; }
  // Whether the call may still end with OK.
  bool is_well() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !ended_.has_value() || ended_->ok(); }
  void NoteEnd(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has CallWork::OnTimer called at `time`. Replaces any earlier request.
  void SetWorkTimer(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the message that has arrived, and frees its bytes. Thread: the one that CallWork::Take runs on.
  virtual absl::Status Read(google::protobuf::Message& message) = 0;
  // Charges an answer's memory before it is encoded. Errors: as UnreadAnswers::Account::Hold.
  absl::Status HoldAnswer(const google::protobuf::Message& answer) {
    return record_.answers().Hold(2 * static_cast<int64_t>(answer.ByteSizeLong()));  // the message and its bytes
  }
  // Makes an answer of the message, in the transport's form. May move from the message. Thread-safe.
  virtual absl::StatusOr<CallAnswer> Encode(google::protobuf::Message&& message) const = 0;
  // Runs `task` by a thread of CallEnvironment::work, without a limit: for an answer to work that was accepted.
  void RunLater(absl::AnyInvocable<void()> task);
  // Runs `task`, which makes an answer from the engine's results: later if `record`, of this call or of a call within
  // it, has announced a large one.
  void RunForAnswer(CallRecord& record, absl::AnyInvocable<void()> task);
  // The transport holds so many bytes of an answer beside the message itself.
  void SetTransportBytes(size_t bytes);
  // The work's answers that wait behind the one that is being written have so many bytes.
  void SetWaitingBytes(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether CallWork::Take, which calls this, runs by a thread of CallEnvironment::work and so may take its time.
  bool takes_in_pool() const { return takes_in_pool_; }
  // Has a delivery thread call Advance (always the same thread), so that the engine's thread does not write.
  void AdvanceLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 protected:
  Call(const CallEnvironment& environment, const Operation& operation, CallOrigin origin);

  const Operation& operation() const { return operation_; }
  // The call's share of CallEnvironment::message_memory. The transport adds a message while it is read.
  Budget::Share& memory() { return memory_; }
  // Admits the call, or ends it. Returns whether it was admitted. The transport holds a reference from now on, until
  // Done.
  bool Open();
  // Sets the bytes that the call holds of a message that is arriving. Errors: RESOURCE_EXHAUSTED with a Refusal.
  // REQUIRES: Open.
  absl::Status HoldArriving(int64_t bytes);
  // Begins the work of a call that was admitted. The message of a call with one message was received.
  void Begin();
  void ReadDone(bool ok);
  void WriteDone(bool ok);
  void Cancelled();
  // The call's deadline has passed, for a transport that does not end the call itself.
  void Expired();
  void Done();

  // The message that was received, as it arrived.
  struct Received {
    int64_t bytes = 0;
    bool is_compressed = false;
    // Predicted CPU time to read a byte.
    absl::Duration time_of_byte = absl::Nanoseconds(5);
  };

 private:
  // Implemented by the transport's side.
  virtual Received Look() = 0;
  // These two are completed by ReadDone and WriteDone. `answer` stays until then.
  virtual void BeginRead() = 0;
  virtual void BeginWrite(CallAnswer& answer) = 0;
  // Called once; no operation begins after it. `answer` is set only if `status` is OK.
  virtual void Finish(const absl::Status& status, std::optional<CallAnswer> answer) = 0;
  // Cancels the call, so that pending operations end. The client finds `why`, if that can still be sent.
  virtual void Abort(const absl::Status& why) = 0;
  // Lets Abort be called after Finish, too.
  virtual void KeepAbortable() = 0;

  bool has_one_message() const {
    return operation_.kind == RpcKind::kUnary || operation_.kind == RpcKind::kServerStream;
  }
  // Has the message read and taken, at once or by a thread of CallEnvironment::work. Took is called after that.
  void TakeSoon();
  void WatchGate();
  void OnStopping();
  absl::Status Take();
  // The end of Begin, or of ReadDone.
  void Took(const absl::Status& status, bool half_closed = false);
  void HoldAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Operations {
    bool read = false;
    bool write = false;
  };
  // The operations that must begin now. If there is one, busy_ counts its thread.
  Operations TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the timer fire no later than `time`.
  void SetTimer(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTimer(int64_t timer);
  // As UnreadAnswers::Owner::end; CANCELLED also if the pending message was not taken in time. Once.
  void EndUnread(const absl::Status& why);

  const Operation& operation_;
  const int64_t bytes_;  // in memory without messages
  CallRecord record_;
  const std::unique_ptr<CallWork> work_;
  std::shared_ptr<Call> self_;  // gRPC's reference
  int64_t gate_watch_ = 0;
  CallAnswer outgoing_;
  Budget::Share memory_;
  bool takes_in_pool_ = false;  // set before each Take

  Mutex mutex_;
  CallGate::IdleNote idle_ ABSL_GUARDED_BY(mutex_);
  // Set once no message is read any longer; OK after the client's half-close.
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  // Threads in functions of the call, which must not finish meanwhile. Begin's counts from the start.
  int64_t busy_ ABSL_GUARDED_BY(mutex_) = 1;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t transport_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  WriteTimer write_timer_ ABSL_GUARDED_BY(mutex_);
  bool reader_gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool unread_ ABSL_GUARDED_BY(mutex_) = false;                 // EndUnread was called
  DeliveryThread* delivery_ ABSL_GUARDED_BY(mutex_) = nullptr;  // set by the first AdvanceLater
  bool advance_scheduled_ ABSL_GUARDED_BY(mutex_) = false;  // posted to the delivery thread, which has not run it yet
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);  // the next timer; it holds no reference to the call
  int64_t timer_ ABSL_GUARDED_BY(mutex_) = 0;                   // its number; earlier timers are ignored
  absl::Time timer_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time work_timer_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // when to call CallWork::OnTimer
};

}  // namespace longshort::server
