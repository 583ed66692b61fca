// A call whose client sends documents and reads answers: they are read, scored and answered side by side. What a
// message is, the front says.
//
// A document is in the window from the moment it is read until its answer is written. The stream reads on only while
// the window has room, so what a stream holds is bounded whatever its client does: one that sends without reading is
// held back by HTTP/2's flow control, and cancelled when it has taken no answer for the slow reader's timeout while one
// waits for it. A document that finds the engine full is held, and the stream reads no further,
// until another of the stream ends or it is time to try again, as the refusal said.
//
// Ownership is shared, because two sides let go in either order: gRPC (until OnDone) and the engine, whose listeners
// hold the stream until they have been told the end.
//
// Thread-safe: gRPC's threads read and write, the engine's answer.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/calls/score_call.h"
#include "server/handlers/text_scorer.h"
#include "server/rpc/rpc_call.h"
#include "server/streaming/write_watch.h"

namespace longshort {

// The messages of a front's contract. Immutable, and there until the process ends.
class ScoreStreamMessages {
 public:
  // Has `take` take what the client's message says, which it shows during the call only, and returns what that returns.
  // Errors: also INVALID_ARGUMENT for bytes that are no message.
  virtual absl::Status Read(const grpc::ByteBuffer& bytes,
                            absl::FunctionRef<absl::Status(const StreamedText&)> take) const = 0;
  // The answer about document `id`: what the model makes of it, or its error.
  virtual absl::StatusOr<grpc::ByteBuffer> Write(uint64_t id, const ServedModel& model,
                                                 const absl::StatusOr<ScoredText>& scored) const = 0;

 protected:
  ~ScoreStreamMessages() = default;  // trivial, so that nothing ends before the last thread
};

class ScoreStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public std::enable_shared_from_this<ScoreStream> {
 public:
  // gRPC holds a reference from now on, until OnDone.
  static ScoreStream* Start(const CallEnvironment& environment, const CallNames& names,
                            const ScoreStreamMessages& messages, grpc::CallbackServerContext* context);
  ~ScoreStream() override;

 private:
  // What is kept of a document until it is answered.
  struct Question {
    uint64_t id = 0;
    int64_t answer_bytes = 0;  // at the most
    DocumentArrival arrival;
  };
  // What is kept until the engine has taken it.
  struct Document {
    Question question;
    TextToScore text;
  };
  struct Answer {
    grpc::ByteBuffer message;
    int64_t answer_bytes = 0;  // as the question's: what leaves the window when it is written
  };

  ScoreStream(const CallEnvironment& environment, const CallNames& names, const ScoreStreamMessages& messages,
              grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { grpc_reference_.reset(); }

  // Begins what it is time for: a write, a read, the end of the call.
  void Advance();
  bool WindowHasRoom() const;
  // Looks after the client's reading from now on, as long as a message is on its way. With the mutex held.
  void WatchReader(absl::Time now);
  void LookAfterReader();

  // What a message asks for. Errors end the call; a bad document is answered.
  absl::Status Take(const StreamedText& message);
  absl::Status Open(const ScoreStreamOptions& options);
  absl::StatusOr<TextToScore> ReadText(const StreamedText& message) const;
  // Gives the engine the document, and then what is held, as long as there is room.
  void Submit(std::optional<Document> document);
  // Keeps a document that was refused like this, and tries again after a while. With the mutex held.
  void Hold(Document document, const absl::Status& refusal);
  void SubmitHeld();
  // The first of held_, or nothing. With the mutex held.
  std::optional<Document> TakeHeld();
  void DocumentEnded(const Question& question, absl::StatusOr<ScoredText> scored);
  // Answers the document; its last step in work.
  void Reply(const Question& question, absl::StatusOr<ScoredText> scored);

  // An idle client must not keep a stopping server: what the engine has is answered, nothing more is read. The call
  // ends well only if that was all.
  void OnStopping();
  // Ends the call with `status` (the first one counts): nothing more is read; what was answered is written.
  void End(const absl::Status& status);

  const CallEnvironment& environment_;
  const ScoreStreamMessages& messages_;
  RpcCall call_;
  CallRecord& record_;
  std::shared_ptr<ScoreStream> grpc_reference_;
  int64_t gate_watch_ = 0;
  // From the first message on.
  std::shared_ptr<const ServedModel> model_;
  std::unique_ptr<TextScorer> scorer_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;

  std::mutex mutex_;  // guards what follows
  CallGate::IdleNote idle_;
  int64_t window_documents_ = 0;
  int64_t window_bytes_ = 0;   // of answers, at the most
  int64_t in_work_ = 0;        // documents that were read and not replied to
  int64_t in_engine_ = 0;      // of these, those that the engine has
  int64_t engine_ends_ = 0;    // documents that the engine has ended so far
  std::deque<Document> held_;  // in work; they found the engine full
  std::unique_ptr<grpc::Alarm> retry_;
  std::deque<Answer> answers_;         // to be written; the first is on its way meanwhile
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
