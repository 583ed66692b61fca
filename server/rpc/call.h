// One call: it reads the client's messages, writes answers, and ends, once. What is done with the messages is its
// CallWork's. A unary call is a stream of one message and one answer, which goes with the status.
//
// - At most one read and one write are under way. Nobody blocks.
// - A stream reads while its work has room, so what it holds is bounded whatever its client does.
// - The call ends when nothing more is to be read (the client has sent all, or there was an error), nothing is in work,
//   and no thread is at work for it. The first error is its status.
// - A client that takes no answer for --slow-reader-timeout while one waits for it is cancelled. Short answers of unary
//   calls are watched only where many of them have not been taken.
// - A stream that a stopping server would wait for in vain is ended by the gate (CallGate).
//
// Ownership is shared, because two sides let go in either order: the front (until Done) and the work's engines, whose
// listeners hold the call until they have been told the end.
//
// Thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/admission/call_record.h"
#include "server/admission/delivery_threads.h"
#include "server/admission/write_timer.h"
#include "server/rpc/rpc.h"

namespace longshort::server {

// Messages as gRPC carries them. The server takes and gives bytes, so that a message that cannot be parsed is an
// INVALID_ARGUMENT that is counted and logged like every other wrong request (gRPC itself would answer INTERNAL,
// unseen).
//
// Parses the message and frees its bytes. Errors: INVALID_ARGUMENT.
inline absl::Status ParseMessage(grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::ProtoBufferReader reader(&bytes);
  const bool parsed = reader.status().ok() && message.ParseFromZeroCopyStream(&reader) && reader.status().ok();
  bytes.Clear();
  if (parsed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ", message.GetDescriptor()->full_name(),
                                                 ": malformed, or a string field is not UTF-8"));
}

template <typename Message>
absl::StatusOr<grpc::ByteBuffer> SerializeMessage(const Message& message) {
  grpc::ByteBuffer bytes;
  bool own_buffer = false;
  const grpc::Status status = grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer);
  if (!status.ok()) return absl::InternalError("the answer cannot be serialised: " + status.error_message());
  return bytes;
}

class Call : public std::enable_shared_from_this<Call> {
 public:
  virtual ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Who sends, for limits of connections.
  virtual std::string peer() const = 0;
  CallRecord& record() { return record_; }
  const CallEnvironment& environment() const { return record_.environment(); }

  // Begins what it is time for: a write, a read, the end of the call.
  void Advance();
  // Ends the call with `status` (the first error counts): nothing more is read; what was answered is written.
  void End(const absl::Status& status);
  // The same for a call whose client may not be reading: a message on its way would hold the end up.
  void EndNow(const absl::Status& status);

  std::mutex& mutex() { return mutex_; }
  // With the mutex held:
  bool writing() const { return watch_.writing(); }
  // Whether answers are lost.
  bool reader_gone() const { return reader_gone_; }
  // Whether the call may still end well.
  bool is_well() const { return !ended_.has_value() || ended_->ok(); }
  void NoteEnd(const absl::Status& status);
  // Has CallWork::Look called at this time, in place of any earlier wish.
  void LookAt(absl::Time time);
  // Has a delivery thread call Advance, always the same one: the engine's thread writes nothing.
  void AdvanceLater();

 protected:
  Call(const CallEnvironment& environment, const Rpc& rpc, CallOrigin origin);

  // Admits the call and begins its work, or ends it. `first` is the message of a call of one message; it is taken.
  // The front holds a reference from now on, until Done.
  void Begin(grpc::ByteBuffer* first);
  void ReadDone(bool ok);
  void WriteDone(bool ok);
  void Cancelled();
  void Done();

 private:
  // The front's side. Each of the first two is answered by its ...Done.
  virtual void BeginRead(grpc::ByteBuffer* message) = 0;
  virtual void BeginWrite(const grpc::ByteBuffer* message) = 0;
  // Once: nothing else is begun after it. `answer` is there only if `status` is OK.
  virtual void Finish(const absl::Status& status, std::optional<grpc::ByteBuffer> answer) = 0;
  // Cancels the call, so that what is under way ends.
  virtual void Abort() = 0;
  // Abort may come after Finish, too.
  virtual void KeepAbortable() = 0;

  bool has_one_message() const { return rpc_.kind == RpcKind::kUnary || rpc_.kind == RpcKind::kServerStream; }
  absl::Status BeginWork(grpc::ByteBuffer* first);
  void AskGate();
  void OnStopping();
  absl::Status Take(grpc::ByteBuffer& bytes);

  // With the mutex held, which it lets go meanwhile. False if there is nothing to read or write now.
  bool BeginNext(std::unique_lock<std::mutex>& lock);
  // With the mutex held: has the timer fire at `time` at the latest.
  void SetTimer(absl::Time time);
  void OnTimer(int64_t timer);
  // The answer that goes with the status is on its way. With the mutex held.
  void WatchLastAnswer(int64_t bytes);
  // The client has not taken what is on its way.
  void CancelSlowReader(bool finished);

  const Rpc& rpc_;
  CallRecord record_;
  const std::unique_ptr<CallWork> work_;
  std::shared_ptr<Call> self_;  // the front's reference
  int64_t gate_watch_ = 0;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  int64_t unwatched_bytes_ = 0;  // of the last answer, in CallEnvironment::unwatched_answer_bytes

  std::mutex mutex_;  // guards what follows
  CallGate::IdleNote idle_;
  std::optional<absl::Status> ended_;  // nothing more is read: OK once the client has sent all
  int64_t busy_ = 0;                   // threads at work for the call: it is not finished under them
  bool reading_ = false;
  WriteTimer watch_;
  bool reader_gone_ = false;
  bool admitted_ = false;
  bool finished_ = false;
  DeliveryThread* delivery_ = nullptr;  // from the first AdvanceLater on
  bool advance_scheduled_ = false;      // the delivery thread has not come to it yet
  std::unique_ptr<grpc::Alarm> alarm_;  // the one that fires next; it holds no reference
  int64_t timer_ = 0;                   // its number: earlier ones count for nothing
  absl::Time timer_at_ = absl::InfiniteFuture();
  absl::Time look_at_ = absl::InfiniteFuture();  // the work's wish
};

}  // namespace longshort::server
