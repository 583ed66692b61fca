#include "clients/cpp/sessions.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

// Versions of a model with the same weights have the same sessions: one of them is enough.
absl::StatusOr<std::vector<v1::ModelSelector>> LanguageModels(Client& client) {
  LS_ASSIGN_OR_RETURN(const v1::ListModelsResponse response, client.ListModels());
  std::vector<v1::ModelSelector> models;
  std::set<std::pair<std::string, std::string>> known;
  for (const v1::Model& model : response.models()) {
    if (model.has_classifier() || !known.emplace(model.name(), model.fingerprint()).second) continue;
    v1::ModelSelector& selector = models.emplace_back();
    selector.set_name(model.name());
    selector.set_version(model.version());
  }
  return models;
}

// Parts on their way from a call that reads to one that writes: a few, then the reader waits.
//
// Thread: one gives, one takes.
class PartPipe final {
 public:
  // False once nobody takes any more.
  bool Give(const v1::SessionPart& part) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return parts_.size() < kMostParts || closed_; });
    if (closed_) return false;
    parts_.push_back(part);
    changed_.notify_all();
    return true;
  }
  // False if there are no more.
  bool Take(v1::SessionPart& part) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !parts_.empty() || ended_; });
    if (parts_.empty()) return false;
    part = std::move(parts_.front());
    parts_.pop_front();
    changed_.notify_all();
    return true;
  }
  // Of the giver: there are no more.
  void End() { Set(ended_); }
  // Of the taker: it takes no more.
  void Close() { Set(closed_); }

 private:
  static constexpr size_t kMostParts = 2;  // of 1 MiB

  void Set(bool& flag) {
    const std::lock_guard lock(mutex_);
    flag = true;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<v1::SessionPart> parts_;
  bool ended_ = false;
  bool closed_ = false;
};

struct Copied {
  // OK, too, if the importing side ended it.
  absl::Status exported;
  absl::StatusOr<v1::ImportSessionResponse> imported;
  int64_t bytes = 0;
};

Copied Copy(Client& from, Client& to, const SessionOfModel& session) {
  v1::ExportSessionRequest request;
  *request.mutable_model() = session.model;
  request.set_session_id(session.session.session_id());
  request.set_owner(session.session.owner());
  v1::ImportBeginning beginning;
  *beginning.mutable_model() = session.model;
  beginning.set_session_id(session.session.session_id());
  beginning.set_keep_owner(true);

  PartPipe pipe;
  Copied copied;
  std::thread exporter([&] {
    bool refused = false;
    copied.exported = from.ExportSession(request, [&](const v1::SessionPart& part) {
      copied.bytes += static_cast<int64_t>(part.data().size());
      refused = refused || !pipe.Give(part);
      return !refused;
    });
    if (refused) copied.exported = absl::OkStatus();
    pipe.End();
  });
  copied.imported = to.ImportSession(beginning, [&](v1::SessionPart& part) { return pipe.Take(part); });
  pipe.Close();
  exporter.join();
  return copied;
}

}  // namespace

std::string SessionOfModel::model_name() const { return absl::StrCat(model.name(), "/", model.version()); }

absl::StatusOr<std::vector<SessionOfModel>> ListSessions(Client& client, const v1::ModelSelector& model,
                                                         bool all_owners) {
  std::vector<v1::ModelSelector> models = {model};
  if (model.name().empty()) {
    LS_ASSIGN_OR_RETURN(models, LanguageModels(client));
  } else if (model.version() == 0) {
    LS_ASSIGN_OR_RETURN(const v1::Model newest, client.GetModel(model));
    models.front().set_version(newest.version());
  }
  std::vector<SessionOfModel> sessions;
  for (const v1::ModelSelector& each : models) {
    v1::ListSessionsRequest request;
    *request.mutable_model() = each;
    request.set_all_owners(all_owners);
    do {
      LS_ASSIGN_OR_RETURN(v1::ListSessionsResponse page, client.ListSessions(request));
      for (v1::ListedSession& session : *page.mutable_sessions()) sessions.push_back({each, std::move(session)});
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
  }
  return sessions;
}

MovedSession MoveSession(Client& from, Client& to, const SessionOfModel& session) {
  const Copied copied = Copy(from, to, session);
  if (absl::IsNotFound(copied.exported)) return {};  // it has ended
  if (!copied.exported.ok()) return {.status = copied.exported};
  if (!copied.imported.ok()) return {.status = copied.imported.status()};
  const std::string& id = session.session.session_id();
  Client::SessionEnd end = {
      .owner = session.session.owner(), .expected_tokens = copied.imported->session_tokens(), .moved = true};
  absl::Status closed = from.EndSession(session.model, id, end);
  if (closed.ok() || absl::IsNotFound(closed)) return {.moved = true, .bytes = copied.bytes};
  if (absl::IsFailedPrecondition(closed)) closed = absl::AbortedError("it went on while it was moved");
  if (absl::IsAborted(closed)) {
    // So that nobody goes on there from what is not the end. If that fails, the next import goes on from it.
    end.moved = false;
    to.EndSession(session.model, id, end).IgnoreError();
  }
  return {.status = closed};
}

}  // namespace longshort
