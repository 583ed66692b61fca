#include "clients/cpp/bulk_scoring.h"

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
  // Returns the document's id: its place among all.
  uint64_t Add(std::string name) {
    const std::lock_guard lock(mutex_);
    documents_.push_back({std::move(name), std::nullopt});
    return first_id_ + documents_.size() - 1;
  }

  // An id that is not waited for is passed over.
  void Answer(uint64_t id, v1::ScoreTextsResponse answer) {
    const std::lock_guard lock(mutex_);
    if (id - first_id_ < documents_.size()) documents_[id - first_id_].answer = std::move(answer);
  }

  // Hands on the first ones, as far as they are answered.
  void HandOn(OnScored on_scored) {
    while (const std::optional<Document> document = TakeAnswered()) on_scored(document->name, *document->answer);
  }

  size_t size() {
    const std::lock_guard lock(mutex_);
    return documents_.size();
  }

 private:
  struct Document {
    std::string name;
    std::optional<v1::ScoreTextsResponse> answer;
  };

  std::optional<Document> TakeAnswered() {
    const std::lock_guard lock(mutex_);
    if (documents_.empty() || !documents_.front().answer.has_value()) return std::nullopt;
    Document document = std::move(documents_.front());
    documents_.pop_front();
    ++first_id_;
    return document;
  }

  std::mutex mutex_;
  std::deque<Document> documents_;  // guarded by mutex_
  uint64_t first_id_ = 0;           // of the front; guarded by mutex_
};

// The next document that can be sent; those before it that cannot are answered with their errors.
bool NextSendable(DocumentSource& source, CheckDocument check, Unfinished& unfinished, v1::ScoreTextsRequest& request) {
  while (std::optional<NamedDocument> document = source.Next()) {
    const uint64_t id = unfinished.Add(std::move(document->name));
    const absl::Status status = document->inputs.ok() ? check(*document->inputs) : document->inputs.status();
    if (status.ok()) {
      request.set_id(id);
      *request.mutable_input() = std::move(document->inputs->first);
      if (document->inputs->second.has_value()) {
        *request.mutable_second_input() = *std::move(document->inputs->second);
      }
      return true;
    }
    v1::ScoreTextsResponse answer;
    *answer.mutable_error() = MakeItemError(status);
    unfinished.Answer(id, std::move(answer));
  }
  return false;
}

}  // namespace

absl::Status ScoreInBulk(Client& client, const v1::ScoreTextsOptions& options, int32_t window, DocumentSource& source,
                         CheckDocument check, OnScored on_scored) {
  Unfinished unfinished;
  absl::Status status = client.ScoreTexts(
      options, window, [&](v1::ScoreTextsRequest& request) { return NextSendable(source, check, unfinished, request); },
      [&](const v1::ScoreTextsResponse& answer) {
        unfinished.Answer(answer.id(), answer);
        unfinished.HandOn(on_scored);
      });
  unfinished.HandOn(on_scored);
  if (status.ok() && unfinished.size() > 0) {
    return absl::InternalError(absl::StrCat("the server left ", unfinished.size(), " documents unanswered"));
  }
  return status;
}

}  // namespace longshort
