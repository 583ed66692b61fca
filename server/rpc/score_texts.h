// One ScoreTexts call: documents are read, scored and answered side by side.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "longshort/v1/inference.pb.h"
#include "server/rpc/call_record.h"
#include "server/rpc/write_watch.h"
#include "server/scoring/text_scorer.h"

namespace longshort {

class TextStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public std::enable_shared_from_this<TextStream> {
 public:
  // gRPC holds a reference from now on, until OnDone.
  static TextStream* Start(const CallEnvironment& environment, grpc::CallbackServerContext* context);
  ~TextStream() override;

 private:
  // What is kept of a document until it is answered.
  struct Question {
    uint64_t id = 0;
    int64_t answer_bytes = 0;  // at the most
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

  TextStream(const CallEnvironment& environment, grpc::CallbackServerContext* context);

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
  absl::Status TakeMessage(const grpc::ByteBuffer& bytes);
  absl::Status Open(const v1::ScoreTextsOptions& options);
  absl::StatusOr<TextToScore> ReadText(const v1::ScoreTextsRequest& request) const;
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
  absl::StatusOr<grpc::ByteBuffer> MessageAbout(const Question& question, absl::StatusOr<ScoredText> scored) const;

  // An idle client must not keep a stopping server: what the engine has is answered, nothing more is read. The call
  // ends well only if that was all.
  void OnStopping();
  // Ends the call with `status` (the first one counts): nothing more is read; what was answered is written.
  void End(const absl::Status& status);

  const CallEnvironment& environment_;
  CallRecord record_;
  std::shared_ptr<TextStream> grpc_reference_;
  int64_t gate_watch_ = 0;
  std::unique_ptr<TextScorer> scorer_;  // from the first message on
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;

  std::mutex mutex_;  // guards what follows
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
