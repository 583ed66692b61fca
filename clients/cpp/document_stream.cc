// Client::ScoreTexts, whose stream of documents outlives its connection.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "clients/cpp/client.h"
#include "clients/cpp/failures.h"
#include "clients/cpp/running_call.h"

namespace longshort::client {

// Sends the documents of a stream in as many attempts as it takes. Each attempt sends those that have no answer yet.
// One thread reads them for all attempts, since it may wait long for the next one.
class Client::DocumentStream final {
 public:
  DocumentStream(Client& client, v1::ScoreTextsOptions options, int32_t window, NextDocument next, OnAnswer on_answer)
      : client_(client),
        window_(static_cast<size_t>(window)),
        next_(next),
        on_answer_(on_answer),
        attempts_(Repeat::kAlways, client.Deadline()),
        options_(std::move(options)) {
    options_.set_keep_alives(true);
  }

  absl::Status Run(StopReading stop) {
    Thread reader;
    const absl::Cleanup end_reading = [&] {
      {
        const MutexLock lock(mutex_);
        given_up_ = true;
        changed_.NotifyAll();
      }
      stop();
    };
    LS_RETURN_IF_ERROR(reader.Start("the thread that reads documents", [this] { ReadDocuments(); }));
    for (;;) {
      absl::Status status = Attempt();
      absl::Duration delay;
      {
        const MutexLock lock(mutex_);
        lost_ = false;
        if (all_read_ && documents_.empty()) return absl::OkStatus();  // whatever the stream's status is
        if (status.ok()) {
          status = absl::InternalError(absl::StrCat("the server did not answer ", documents_.size(), " documents"));
        }
        LS_ASSIGN_OR_RETURN(delay, attempts_.DelayAfter(status));
        changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_read_ || !documents_.empty(); });
        if (documents_.empty()) return absl::OkStatus();
      }
      LS_RETURN_IF_ERROR(client_.Wait(delay, status));
    }
  }

 private:
  // A document, and its answer while an earlier document has none.
  struct Unshown {
    std::string name;
    v1::ScoreTextsRequest request;
    std::optional<v1::ScoreTextsResponse> answer;
  };

  void ReadDocuments() {
    for (uint64_t id = 0;; ++id) {
      {
        const MutexLock lock(mutex_);
        changed_.Wait(mutex_,
                      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return given_up_ || documents_.size() < window_; });
        if (given_up_) return;
      }
      std::optional<Document> document = next_();
      const MutexLock lock(mutex_);
      if (given_up_) return;
      changed_.NotifyAll();
      all_read_ = !document.has_value();
      if (all_read_) return;
      Unshown& read = documents_[id];
      read.name = std::move(document->name);
      if (document->item.ok()) {
        read.request = *std::move(document->item);
        read.request.set_id(id);
      } else {
        *read.answer.emplace().mutable_error() = MakeItemError(document->item.status());
        ShowFirst();
      }
    }
  }

  // Sends the documents that have no answer over one stream, and receives answers until it ends.
  absl::Status Attempt() {
    attempts_.WasAlive();
    RunningCall running(client_, attempts_.deadline());
    const auto stream = client_.inference_->ScoreTexts(running.context());
    Thread sender;
    const absl::Status started = sender.Start("the thread that sends documents", [&, options = options_] {
      std::optional<v1::ScoreTextsOptions> beginning = options;
      v1::ScoreTextsRequest request;
      for (uint64_t id = 0; Take(id, request); id = request.id() + 1) {
        if (beginning.has_value()) *request.mutable_options() = *std::exchange(beginning, std::nullopt);
        // A failed write does not always mean a failed call, but a failed Read does. Until then a window of documents
        // at most is written.
        stream->Write(request);
      }
      stream->WritesDone();
    });
    if (!started.ok()) running.context()->TryCancel();
    for (v1::ScoreTextsResponse answer; stream->Read(&answer);) {
      attempts_.WasAlive();
      if (answer.has_keep_alive()) continue;
      attempts_.Succeeded();
      if (answer.has_model()) *options_.mutable_model() = answer.model();
      const MutexLock lock(mutex_);
      if (const auto answered = documents_.find(answer.id()); answered != documents_.end()) {
        answered->second.answer = std::exchange(answer, {});
        ShowFirst();
      }
    }
    {
      const MutexLock lock(mutex_);
      lost_ = true;
      changed_.NotifyAll();
    }
    running.Leave();
    sender.Join();
    const grpc::Status status = stream->Finish();
    return started.ok() ? running.StatusOf(status) : started;
  }

  // Waits for the next document without an answer, from `id` on. Returns false at the end of the documents or of the
  // attempt.
  bool Take(uint64_t id, v1::ScoreTextsRequest& request) {
    const MutexLock lock(mutex_);
    auto next = documents_.end();
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      next = std::find_if(documents_.lower_bound(id), documents_.end(),
                          [](const auto& document) { return !document.second.answer.has_value(); });
      return lost_ || all_read_ || next != documents_.end();
    });
    if (lost_ || next == documents_.end()) return false;
    request = next->second.request;
    return true;
  }

  // Shows the answers that wait for no earlier one.
  void ShowFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!documents_.empty() && documents_.begin()->second.answer.has_value()) {
      const auto shown = documents_.extract(documents_.begin());
      on_answer_(shown.mapped().name, *shown.mapped().answer);
    }
    changed_.NotifyAll();
  }

  Client& client_;
  const size_t window_;
  const NextDocument next_;
  const OnAnswer on_answer_;
  // Only the caller's thread uses these two.
  Attempts attempts_;
  v1::ScoreTextsOptions options_;  // for the next attempt, with the model of the last answer

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<uint64_t, Unshown> documents_ ABSL_GUARDED_BY(mutex_);  // by id, which is the place from 0
  bool all_read_ ABSL_GUARDED_BY(mutex_) = false;
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;      // the running attempt
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;  // all attempts
};

absl::Status Client::ScoreTexts(const v1::ScoreTextsOptions& options, int32_t window, NextDocument next,
                                OnAnswer on_answer, StopReading stop) {
  return DocumentStream(*this, options, window, next, on_answer).Run(stop);
}

}  // namespace longshort::client
