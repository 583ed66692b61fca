#include "clients/cpp/bulk_scoring.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cpp/item_failures.h"

namespace longshort {
namespace {

// The documents that were read and not handed on, in order. Thread: any.
class Unfinished final {
 public:
  Unfinished(OnScored on_scored, size_t most_held_bytes) : on_scored_(on_scored), most_held_bytes_(most_held_bytes) {}

  // Returns the document's id, its place among all; nullopt if there will be no more answers. Waits while the answers
  // that wait for the first document take too much memory: it is in the server's hands, since all were sent or
  // answered.
  std::optional<uint64_t> Add(std::string name) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || held_bytes_ < most_held_bytes_; });
    if (closed_) return std::nullopt;
    documents_.push_back({std::move(name), std::nullopt, 0});
    return first_id_ + documents_.size() - 1;
  }

  // Hands on the first documents, as far as they are answered now. An id that is not waited for is passed over.
  void Answer(uint64_t id, v1::ScoreTextsResponse answer) {
    const std::lock_guard one_at_a_time(handing_on_);
    Hold(id, std::move(answer));
    while (const std::optional<Document> document = TakeAnswered()) on_scored_(document->name, *document->answer);
  }

  // There will be no more answers.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  size_t size() {
    const std::lock_guard lock(mutex_);
    return documents_.size();
  }

 private:
  struct Document {
    std::string name;
    std::optional<v1::ScoreTextsResponse> answer;
    size_t bytes = 0;  // of the answer
  };

  void Hold(uint64_t id, v1::ScoreTextsResponse answer) {
    const std::lock_guard lock(mutex_);
    if (id - first_id_ >= documents_.size() || documents_[id - first_id_].answer.has_value()) return;
    Document& document = documents_[id - first_id_];
    document.bytes = answer.SpaceUsedLong();
    document.answer = std::move(answer);
    held_bytes_ += document.bytes;
  }

  std::optional<Document> TakeAnswered() {
    const std::lock_guard lock(mutex_);
    if (documents_.empty() || !documents_.front().answer.has_value()) return std::nullopt;
    Document document = std::move(documents_.front());
    documents_.pop_front();
    ++first_id_;
    held_bytes_ -= document.bytes;
    changed_.notify_all();
    return document;
  }

  const OnScored on_scored_;
  const size_t most_held_bytes_;
  std::mutex handing_on_;  // held before mutex_

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Document> documents_;
  uint64_t first_id_ = 0;  // of the front
  size_t held_bytes_ = 0;
  bool closed_ = false;
};

// Puts the document into `request`. Errors: why it cannot be sent.
absl::Status PutDocument(absl::StatusOr<DocumentInputs> inputs, CheckDocument check, int64_t message_bytes,
                         v1::ScoreTextsRequest& request) {
  if (!inputs.ok()) return inputs.status();
  if (absl::Status fits = check(*inputs); !fits.ok()) return fits;
  *request.mutable_input() = std::move(inputs->first);
  request.clear_second_input();
  if (inputs->second.has_value()) *request.mutable_second_input() = *std::move(inputs->second);
  const auto bytes = static_cast<int64_t>(request.ByteSizeLong());
  if (message_bytes == 0 || bytes <= message_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it takes a message of ", bytes, " bytes; the server takes at most ",
                                                 message_bytes, " (--max-message-bytes)"));
}

// The next document that can be sent; those before it that cannot are answered with their errors.
bool NextSendable(DocumentSource& source, CheckDocument check, int64_t message_bytes, Unfinished& unfinished,
                  v1::ScoreTextsRequest& request) {
  while (std::optional<NamedDocument> document = source.Next()) {
    const std::optional<uint64_t> id = unfinished.Add(std::move(document->name));
    if (!id.has_value()) return false;
    request.set_id(*id);
    const absl::Status status = PutDocument(std::move(document->inputs), check, message_bytes, request);
    if (status.ok()) return true;
    v1::ScoreTextsResponse answer;
    *answer.mutable_error() = MakeItemError(status);
    unfinished.Answer(*id, std::move(answer));
  }
  return false;
}

}  // namespace

absl::Status ScoreInBulk(Client& client, const v1::ScoreTextsOptions& options, const BulkLimits& limits,
                         DocumentSource& source, CheckDocument check, OnScored on_scored) {
  Unfinished unfinished(on_scored, limits.held_bytes);
  absl::Status status = client.ScoreTexts(
      options, limits.window,
      [&](v1::ScoreTextsRequest& request) {
        return NextSendable(source, check, limits.message_bytes, unfinished, request);
      },
      [&](const v1::ScoreTextsResponse& answer) { unfinished.Answer(answer.id(), answer); },
      [&] { unfinished.Close(); });
  if (status.ok() && unfinished.size() > 0) {
    return absl::InternalError(absl::StrCat("the server left ", unfinished.size(), " documents unanswered"));
  }
  return status;
}

}  // namespace longshort
