// A stream of documents: they are read, scored and answered side by side.
//
// A document is in the window from the moment it is read until its answer is written. The stream wants the next one
// only while the window has room, so what it holds is bounded whatever its client does. A document that finds the
// engine full is held, and no further one is wanted, until another of the stream ends or it is time to try again, as
// the refusal said.
//
// Thread-safe: the front's threads read and write; the engine's threads answer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admission/call_record.h"
#include "server/calls/score_call.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {

// Receives the answers of a stream of documents. Thread-safe; must not block.
class DocumentSink {
 public:
  // What the model makes of document `id`, or its error. It leaves the window by Written(answer_bytes).
  virtual void Push(uint64_t id, const core::ServedModel& model, const absl::StatusOr<ScoredText>& scored,
                    int64_t answer_bytes) = 0;
  // The client has left, or the server is stopping: the call must end with this status.
  virtual void End(const absl::Status& status) = 0;
  // Work has ended: HasRoom and HasWork may have changed.
  virtual void Advance() = 0;
  // A document is held: Retry is to be called at retry_time().
  virtual void RetryLater() = 0;
  // Holds sink and stream.
  virtual std::shared_ptr<void> Keep() = 0;

 protected:
  ~DocumentSink() = default;
};

class DocumentStream final {
 public:
  // Both must outlive the stream.
  DocumentStream(CallRecord& record, DocumentSink& sink) : record_(record), sink_(sink) {}

  // The next document, one at a time. A bad one is answered. Errors end the call.
  absl::Status Take(const StreamedText& message);
  void Retry() { Submit(TakeHeld()); }
  // An answer, for which at most this many bytes were reserved, was written or lost.
  void Written(int64_t answer_bytes);
  // The call ends with an error: what is held never begins.
  void DropHeld();

  // Whether the next document is wanted; whether documents were read and not answered; whether some are held.
  bool HasRoom() const;
  bool HasWork() const;
  bool HasHeld() const;
  // When the document that was held last may try again.
  absl::Time retry_time() const;

 private:
  // What is kept of a document until it is answered.
  struct Question {
    uint64_t id = 0;
    int64_t answer_bytes = 0;  // upper bound
    DocumentArrival arrival;
  };
  // What is kept until the engine has taken it.
  struct Document {
    Question question;
    TextToScore text;
  };

  absl::Status Open(const ScoreStreamOptions& options);
  absl::StatusOr<TextToScore> Read(const StreamedText& message) const;
  // Gives the engine the document, and then what is held, as long as there is room.
  void Submit(std::optional<Document> document);
  // What becomes of one that the engine has refused: whether it is to be tried again at once, is held, or is answered.
  enum class Refused { kAgain, kHeld, kAnswered };
  Refused AfterRefusal(Document& document, const absl::Status& status, int64_t ends_before);
  // The first of held_, or nothing.
  std::optional<Document> TakeHeld();
  void Ended(const Question& question, const absl::StatusOr<ScoredText>& scored);
  // Answers the document; its last step in work.
  void Reply(const Question& question, const absl::StatusOr<ScoredText>& scored);

  CallRecord& record_;
  DocumentSink& sink_;
  // From the first message on.
  std::shared_ptr<const core::ServedModel> model_;
  std::unique_ptr<TextScorer> scorer_;

  mutable std::mutex mutex_;  // guards what follows, and the record's work
  bool dropped_ = false;
  int64_t window_documents_ = 0;
  int64_t window_bytes_ = 0;   // limit of the bytes of answers
  int64_t in_work_ = 0;        // documents that were read and not replied to
  int64_t in_engine_ = 0;      // of these, those that the engine has
  int64_t engine_ends_ = 0;    // documents that the engine has ended so far
  std::deque<Document> held_;  // in work; they found the engine full
  absl::Time retry_time_ = absl::InfiniteFuture();
};

}  // namespace longshort::server
