#include "clients/cpp/bulk_scoring.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/item_failures.h"
#include "clients/cpp/retry_delay.h"

namespace longshort {
namespace {

std::string TextOf(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

// Whether `found` gives the answers that `wanted` gives. Errors: FAILED_PRECONDITION with the difference.
absl::Status CheckSameModel(const v1::Model& wanted, const v1::Model& found) {
  if (wanted.fingerprint() != found.fingerprint()) {
    return absl::FailedPreconditionError(absl::StrCat("its model ", found.name(), " has the fingerprint ",
                                                      found.fingerprint(), "; the run began with ",
                                                      wanted.fingerprint()));
  }
  if (wanted.precision() != found.precision()) {
    return absl::FailedPreconditionError(absl::StrCat("its model ", found.name(), " has the precision ",
                                                      found.precision(), "; the run began with ", wanted.precision()));
  }
  return absl::OkStatus();
}

// One server's part of the work, in a thread of its own.
class Worker final {
 public:
  Worker(DocumentsInHand::Server place, const ServerClient& server, const v1::Model& model, const BulkOptions& options,
         DocumentsInHand& documents, const BulkListener& listener)
      : place_(place),
        address_(server.address),
        client_(*server.client),
        model_(model),
        options_(options),
        documents_(documents),
        listener_(listener) {}

  // Works until all documents are answered (OK), or the server is left.
  absl::Status Run() {
    while (documents_.WaitForWork()) {
      absl::Status status = OneStream();
      const size_t unanswered = documents_.GiveBack(place_);
      if (status.ok() && unanswered > 0) {
        status = absl::InternalError(absl::StrCat("the server left ", unanswered, " documents unanswered"));
      }
      if (status.ok()) continue;
      if (!options_.retry || !MayPass(status)) return status;
      LS_RETURN_IF_ERROR(WaitAfter(status));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status OneStream() {
    v1::GetModelRequest request;
    *request.mutable_model() = options_.texts.model();
    LS_ASSIGN_OR_RETURN(const v1::Model found, client_.GetModel(request));
    LS_RETURN_IF_ERROR(CheckSameModel(model_, found));
    if (is_away_) listener_.on_news(absl::StrCat(address_, " is back"));
    is_away_ = false;
    return client_.ScoreTexts(
        options_.texts, std::max(found.limits().window(), 1),
        [this](v1::ScoreTextsRequest& next) { return Rest() && documents_.Take(place_, next); },
        [this](const v1::ScoreTextsResponse& answer) { TakeAnswer(answer); },
        [this] { documents_.StopTaking(place_); });
  }

  void TakeAnswer(const v1::ScoreTextsResponse& answer) {
    if (options_.retry && answer.has_error() && MayPass(StatusOf(answer.error()))) {
      std::optional<absl::Duration> told;
      if (answer.error().has_retry_after_seconds()) told = absl::Seconds(answer.error().retry_after_seconds());
      rest_ = absl::ToChronoNanoseconds(refusals_.Next(told));
      documents_.Refuse(place_, answer.id());
      return;
    }
    delay_.Reset();
    refusals_.Reset();
    documents_.Answer(place_, answer);
  }

  // Leaves the server alone if it wants that. False if it was cancelled.
  bool Rest() {
    const std::chrono::nanoseconds rest = rest_.exchange({});
    return rest.count() == 0 || client_.Pause(absl::FromChrono(rest)).ok();
  }

  // Errors: CANCELLED.
  absl::Status WaitAfter(const absl::Status& status) {
    if (!is_away_) listener_.on_news(absl::StrCat(address_, " is waited for: ", TextOf(status)));
    is_away_ = true;
    return client_.Pause(delay_.Next(RetryAfter(status)));
  }

  const DocumentsInHand::Server place_;
  const std::string& address_;
  Client& client_;
  const v1::Model& model_;
  const BulkOptions& options_;
  DocumentsInHand& documents_;
  const BulkListener& listener_;

  RetryDelay delay_;     // of streams that failed
  RetryDelay refusals_;  // of documents that a full server refused
  bool is_away_ = false;
  // What the server is to be left alone for before it gets the next document.
  std::atomic<std::chrono::nanoseconds> rest_ = {};
};

}  // namespace

absl::StatusOr<v1::Model> DescribeModel(absl::Span<const ServerClient> servers, const v1::ModelSelector& selector,
                                        bool retry, absl::FunctionRef<void(const std::string& news)> on_news) {
  v1::GetModelRequest request;
  *request.mutable_model() = selector;
  RetryDelay delay;
  for (bool is_first = true;; is_first = false) {
    absl::Status status;
    bool may_pass = false;
    for (const ServerClient& server : servers) {
      absl::StatusOr<v1::Model> model = server.client->GetModel(request);
      if (model.ok() || absl::IsCancelled(model.status())) return model;
      may_pass = may_pass || MayPass(model.status());
      status = model.status();
      if (retry && is_first && MayPass(status)) {
        on_news(absl::StrCat(server.address, " is waited for: ", TextOf(status)));
      }
    }
    if (!retry || !may_pass) return status;
    LS_RETURN_IF_ERROR(servers.front().client->Pause(delay.Next(RetryAfter(status))));
  }
}

BulkEnd ScoreInBulk(absl::Span<const ServerClient> servers, const v1::Model& model, const BulkOptions& options,
                    DocumentSource& source, CheckDocument check, const BulkListener& listener) {
  std::mutex listening;
  const auto on_scored = [&](const std::string& name, const v1::ScoreTextsResponse& answer) {
    const std::lock_guard one_at_a_time(listening);
    return listener.on_scored(name, answer);
  };
  const auto on_news = [&](const std::string& news) {
    const std::lock_guard one_at_a_time(listening);
    listener.on_news(news);
  };
  const BulkListener in_turn = {on_scored, on_news};
  DocumentsInHand documents(source, check, on_scored, options.limits, options.retry || servers.size() > 1);

  std::mutex mutex;
  BulkEnd end;                      // guarded by mutex
  size_t working = servers.size();  // guarded by mutex
  std::vector<std::thread> threads;
  threads.reserve(servers.size());
  for (size_t i = 0; i < servers.size(); ++i) {
    threads.emplace_back([&, i] {
      const absl::Status status = Worker(static_cast<int>(i), servers[i], model, options, documents, in_turn).Run();
      const std::lock_guard lock(mutex);
      --working;
      if (status.ok()) return;
      if (absl::IsCancelled(end.status)) return;
      end = {status, servers[i].address};
      if (working == 0 || absl::IsCancelled(status)) {
        documents.Close();
      } else {
        on_news(absl::StrCat(servers[i].address, " is left: ", TextOf(status)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (documents.all_answered()) return {};
  if (end.status.ok()) end.status = absl::CancelledError("nobody wants the answers any more");
  return end;
}

}  // namespace longshort
