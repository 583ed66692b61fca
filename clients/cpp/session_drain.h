// Moves all sessions of a server to another one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"
#include "clients/cpp/sessions.h"

namespace longshort {

// A few sessions move at a time, those that were used last first. Sessions in use are waited for, and what failed in a
// way that may pass is tried again, until none is left that may be moved, or the time is over: then all calls are
// cancelled.
//
// Nothing is lost: a session ends at the one server once the other has it.
class SessionDrain final {
 public:
  struct Left {
    SessionOfModel session;
    absl::Status why;
  };
  struct Result {
    int64_t moved = 0;
    int64_t bytes = 0;  // of those that were moved
    std::vector<Left> left;
    absl::Duration elapsed = absl::ZeroDuration();
  };
  // Hears how many there are, each time before some are moved; and of each that was moved. One call at a time.
  struct Observer {
    std::function<void(int64_t sessions)> on_sessions;
    std::function<void()> on_moved;
  };

  // Both clients must outlive this, and are used for nothing else meanwhile: their calls are cancelled.
  SessionDrain(Client& from, Client& to, const v1::ModelSelector& model, absl::Duration timeout, Observer observer)
      : from_(from), to_(to), model_(model), timeout_(timeout), observer_(std::move(observer)) {}

  // Once. Errors: if the server does not say which sessions there are.
  absl::StatusOr<Result> Run();

 private:
  struct Failure {
    absl::Status status;
    // When it is tried again; never, if it will be refused again.
    absl::Time again;
  };
  using Name = std::tuple<std::string, std::string, std::string>;  // model, owner, session
  static Name NameOf(const SessionOfModel& session);

  // Cancels the calls when the time is over, until `over_`.
  void Watch();
  absl::StatusOr<Result> MoveUntilNoneIsLeft();
  // The sessions that there are. Asks again what may pass.
  absl::StatusOr<std::vector<SessionOfModel>> List();
  // Moves those that are not in use, and whose time has come.
  void MoveSome(std::vector<SessionOfModel> sessions);
  void MoveOne(const SessionOfModel& session);
  // Whether it may be moved yet.
  bool MayMove(const SessionOfModel& session);
  // When one of them is worth another try; at once, if all are done with.
  absl::Time NextTry(const std::vector<SessionOfModel>& sessions);
  // Returns at that time, or when the drain is to end.
  void WaitUntil(absl::Time time);
  bool ended();

  Client& from_;
  Client& to_;
  const v1::ModelSelector model_;
  const absl::Duration timeout_;
  const Observer observer_;
  const absl::Time begun_ = absl::Now();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool ended_ = false;  // the time is over, or somebody cancelled
  bool over_ = false;   // nothing runs any more
  int moving_ = 0;      // sessions that are under way
  int64_t done_ = 0;    // how often one has ended to be
  Result result_;
  std::map<Name, Failure> failures_;
};

}  // namespace longshort
