#include "clients/cpp/session_move.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"

namespace longshort {
namespace {

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

v1::CloseSessionRequest Closing(const SessionOfModel& session, int64_t tokens) {
  v1::CloseSessionRequest request;
  *request.mutable_model() = session.model;
  request.set_session_id(session.session.session_id());
  request.set_owner(session.session.owner());
  request.set_expected_tokens(tokens);
  return request;
}

}  // namespace

MovedSession MoveSession(Client& from, Client& to, const SessionOfModel& session) {
  const Copied copied = Copy(from, to, session);
  if (absl::IsNotFound(copied.exported)) return {};  // it has ended
  if (!copied.exported.ok()) return {.status = copied.exported};
  if (!copied.imported.ok()) return {.status = copied.imported.status()};
  const int64_t tokens = copied.imported->session_tokens();
  v1::CloseSessionRequest close = Closing(session, tokens);
  close.set_moved(true);
  absl::Status closed = from.CloseSession(close);
  if (closed.ok() || absl::IsNotFound(closed)) return {.moved = true, .bytes = copied.bytes};
  if (absl::IsFailedPrecondition(closed)) closed = absl::AbortedError("it went on while it was moved");
  if (absl::IsAborted(closed)) {
    // So that nobody goes on there from what is not the end. If that fails, the next import goes on from it.
    to.CloseSession(Closing(session, tokens)).IgnoreError();
  }
  return {.status = closed};
}

}  // namespace longshort
