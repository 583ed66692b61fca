// Scores the documents of a stream concurrently.
//
// A document is in the window from when it is read until its answer is written. The stream reads the next one only
// while the window has room, so its memory is bounded whatever the client does. A document that finds the engine full
// is held. No further document is read until another document of the stream ends, or the refusal's retry delay has
// passed.
//
// Thread-safe: gRPC's threads read and write, the engine's threads answer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "server/call/call_record.h"
#include "server/calls/score_call.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {

// Receives the answers of a stream of documents. Thread-safe; must not block.
class DocumentSink {
 public:
  // The result of document `id`, or its error. It stays in the window until Written(answer_bytes).
  virtual void Push(uint64_t id, const core::ServedModel& model, const absl::StatusOr<ScoredText>& scored,
                    int64_t answer_bytes) = 0;
  // The client disconnected, or the server is stopping: the call must end with this status.
  virtual void End(const absl::Status& status) = 0;
  // A document ended, so HasRoom and HasWork may have changed.
  virtual void Advance() = 0;
  // A document is held: Retry must be called at retry_time().
  virtual void RetryLater() = 0;
  // A reference that keeps the sink and the stream alive.
  virtual std::shared_ptr<void> Keep() = 0;

 protected:
  ~DocumentSink() = default;
};

class DocumentStream final {
 public:
  // Both must outlive the stream.
  DocumentStream(CallRecord& record, DocumentSink& sink) : record_(record), sink_(sink) {}

  // Takes the next document, one at a time. An invalid document is answered with its error. Errors end the call.
  absl::Status Take(const StreamedText& message);
  void Retry();
  // An answer, for which `answer_bytes` were reserved, was written or lost.
  void Written(int64_t answer_bytes);
  // The call ends with an error: removes held documents.
  void RemoveHeld();

  // Whether the next document may be read.
  bool HasRoom() const;
  // Whether documents are unanswered.
  bool HasWork() const;
  // Whether documents are held.
  bool HasHeld() const;
  // When to retry the held documents.
  absl::Time retry_time() const;

 private:
  // Data kept for a document until it is answered.
  struct PendingAnswer {
    uint64_t id = 0;
    int64_t answer_bytes = 0;  // upper bound
    DocumentArrival arrival;
    std::shared_ptr<Budget::Share> memory = nullptr;  // of a large result, until it is encoded
  };
  // Data kept until the engine has accepted the document.
  struct Document {
    PendingAnswer pending;
    TextToScore text;
    Budget::Share memory = {};  // of the text, from when it is held first
  };

  absl::Status Open(const ScoreStreamOptions& options);
  absl::StatusOr<TextToScore> Read(const StreamedText& message) const;
  // Submits the document and then held ones to the engine, as long as it accepts them.
  void Submit(std::optional<Document> document);
  // Charges the client for the document's result, if it may be large. Errors: as core::Hold.
  absl::Status HoldResult(PendingAnswer& pending) const;
  // What to do with a document that the engine has refused with `status`: submit it again at once, hold it, or answer
  // it. To hold it takes memory; if there is none, that becomes the status.
  enum class Refused { kAgain, kHeld, kAnswered };
  Refused AfterRefusal(Document& document, absl::Status& status, int64_t ends_before);
  // Removes and returns the first of held_, if any.
  std::optional<Document> TakeHeld();
  void Ended(const PendingAnswer& pending, absl::StatusOr<ScoredText> scored);
  // Answers the document, which then is no longer in work.
  void Reply(const PendingAnswer& pending, const absl::StatusOr<ScoredText>& scored);

  CallRecord& record_;
  DocumentSink& sink_;
  // Set by the first message.
  std::shared_ptr<const core::ServedModel> model_;
  std::unique_ptr<TextScorer> scorer_;

  mutable Mutex mutex_;  // guards the record's AddWork, too
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t window_documents_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t window_bytes_ ABSL_GUARDED_BY(mutex_) = 0;   // reserved for the answers of documents in the window
  int64_t in_work_ ABSL_GUARDED_BY(mutex_) = 0;        // documents read and not answered
  int64_t in_engine_ ABSL_GUARDED_BY(mutex_) = 0;      // documents in work that the engine has
  int64_t engine_ends_ ABSL_GUARDED_BY(mutex_) = 0;    // total of documents that the engine has ended
  std::deque<Document> held_ ABSL_GUARDED_BY(mutex_);  // documents in work that the engine refused because it was full
  absl::Time retry_time_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace longshort::server
