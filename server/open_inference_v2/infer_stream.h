// ModelStreamInfer: a call whose client sends requests and reads answers. Requests are worked on side by side. A
// generation has an answer for each piece of text, which come between those of others; requests with one answer are
// answered in the order in which they came. What goes wrong with one request is its answer, and the stream goes on.
//
// The stream reads on only while it has few requests in work, and a generation pauses while much of it waits for a slow
// reader, so what a stream holds is bounded whatever its client does. A client that takes no answer for the slow
// reader's timeout while one waits for it is cancelled.
//
// Ownership is shared between gRPC (until OnDone) and the requests, which the engines hold until they have been told
// the end.
//
// Thread-safe: gRPC's threads read and write, the engines' answer.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "server/open_inference_v2/streamed_request.h"
#include "server/rpc/rpc_call.h"
#include "server/streaming/delivery_threads.h"
#include "server/streaming/write_watch.h"

namespace longshort {

class InferStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public StreamedRequest::Owner,
                          public std::enable_shared_from_this<InferStream> {
 public:
  // gRPC holds a reference from now on, until OnDone.
  static InferStream* Start(const CallEnvironment& environment, grpc::CallbackServerContext* context);
  ~InferStream() override;

 private:
  InferStream(const CallEnvironment& environment, grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { grpc_reference_.reset(); }

  // Of StreamedRequest::Owner. Advance begins what it is time for: a write, a read, the end of the call.
  std::mutex& mutex() override { return mutex_; }
  void NoteAnswers(const std::shared_ptr<StreamedRequest>& request) override;
  void Advance() override;
  void AdvanceLater() override;

  // Begins the work that the message asks for. Errors end the call.
  absl::Status TakeRequest();
  // Puts the next answer where StartWrite takes it. False if there is none now. With the mutex held.
  bool TakeAnswer();
  void Note(const std::shared_ptr<StreamedRequest>& request);
  // Looks after the client's reading from now on, as long as a message is on its way. With the mutex held.
  void WatchReader(absl::Time now);
  void LookAfterReader();

  void OnStopping();
  // Nobody waits for an answer any more.
  void Cancel();
  // Ends the call with `status` (the first one counts): nothing more is read; what is in work is answered.
  void End(const absl::Status& status);

  const CallEnvironment& environment_;
  RpcCall call_;
  DeliveryThread& delivery_;
  std::shared_ptr<InferStream> grpc_reference_;
  int64_t gate_watch_ = 0;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  int64_t requests_ = 0;  // so far

  std::mutex mutex_;  // guards what follows
  CallGate::IdleNote idle_;
  std::set<std::shared_ptr<StreamedRequest>> in_work_;
  std::deque<std::shared_ptr<StreamedRequest>> in_order_;  // of these, those with one answer, as they came
  std::deque<std::shared_ptr<StreamedRequest>> ready_;     // those that have something to say, by turns
  std::optional<absl::Status> ended_;                      // nothing more is read: OK after the client's half-close
  int64_t busy_ = 0;  // threads that take a message, begin a read or write, or cancel: the call is not finished
                      // under them
  bool reading_ = false;
  bool scheduled_ = false;  // the delivery thread has not come to it yet
  WriteWatch watch_;
  std::unique_ptr<grpc::Alarm> look_;  // set while the client's reading is looked after
  bool reader_gone_ = false;
  bool finished_ = false;
};

}  // namespace longshort
