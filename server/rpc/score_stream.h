// The work of a call whose client sends documents and reads answers: they are read, scored and answered side by side.
// What a message is, the front says.
//
// A document is in the window from the moment it is read until its answer is written. The stream reads on only while
// the window has room, so what a stream holds is bounded whatever its client does: one that sends without reading is
// held back by HTTP/2's flow control, and cancelled when it has taken no answer for the slow reader's timeout while one
// waits for it. A document that finds the engine full is held, and the stream reads no further,
// until another of the stream ends or it is time to try again, as the refusal said.
//
// Thread-safe: gRPC's threads read and write, the engine's answer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/calls/score_call.h"
#include "server/handlers/text_scorer.h"
#include "server/rpc/call.h"

namespace longshort {

// The messages of a front's contract. Immutable, and there until the process ends.
class ScoreStreamMessages {
 public:
  // Has `take` take what the client's message says, which it shows during the call only, and returns what that returns.
  virtual absl::Status Read(const google::protobuf::Message& message,
                            absl::FunctionRef<absl::Status(const StreamedText&)> take) const = 0;
  // The answer about document `id`: what the model makes of it, or its error.
  virtual absl::StatusOr<grpc::ByteBuffer> Write(uint64_t id, const ServedModel& model,
                                                 const absl::StatusOr<ScoredText>& scored) const = 0;

 protected:
  ~ScoreStreamMessages() = default;  // trivial, so that nothing ends before the last thread
};

class ScoreStream final : public CallWork {
 public:
  ScoreStream(Call& call, const ScoreStreamMessages& messages) : call_(call), messages_(messages) {}

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

  // Of CallWork.
  absl::Status Take(google::protobuf::Message& message) override;
  void Cancel(const absl::Status& reason) override;
  void Look(absl::Time /*now*/) override { SubmitHeld(); }
  bool HasRoom() const override;
  bool MayBeIdle() const override { return true; }
  std::optional<grpc::ByteBuffer> NextAnswer() override;
  void Written() override;
  bool HasWork() const override { return in_work_ > 0; }
  bool HasHeld() const override { return !held_.empty(); }
  void DropHeld() override;

  // A bad document is answered.
  absl::Status TakeText(const StreamedText& message);
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

  CallRecord& record() { return call_.record(); }
  const CallEnvironment& environment() const { return call_.environment(); }
  std::mutex& mutex() { return call_.mutex(); }

  Call& call_;
  const ScoreStreamMessages& messages_;
  // From the first message on.
  std::shared_ptr<const ServedModel> model_;
  std::unique_ptr<TextScorer> scorer_;

  // Call::mutex() guards what follows.
  int64_t window_documents_ = 0;
  int64_t window_bytes_ = 0;          // limit of the bytes of answers
  int64_t in_work_ = 0;               // documents that were read and not replied to
  int64_t in_engine_ = 0;             // of these, those that the engine has
  int64_t engine_ends_ = 0;           // documents that the engine has ended so far
  std::deque<Document> held_;         // in work; they found the engine full
  std::deque<Answer> answers_;        // to be written
  int64_t written_answer_bytes_ = 0;  // of the answer that is on its way
};

}  // namespace longshort
