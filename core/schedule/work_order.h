// The order of all work: priorities by weighted deficit round-robin, clients of a priority by virtual time, work of a
// client by due time and then by arrival. Two levels, because they have two users: the operator weighs priorities
// (priority_weights), and clients that know nothing of each other share what their priority gets.
//
// Thread: nothing here is thread-safe; the owner guards it. All calls take O(log n); First is also linear in the work
// that it skips because it does not match.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/work_attributes.h"

namespace longshort::core {

// Weighted deficit round-robin: decides which priority runs next.
//
// In a round, each priority may use the worker for its weight times a quantum; the highest goes first. Work is charged
// when it is taken, and may overdraw the share. Then its priority waits until later rounds have made up for it. So
// priorities that wait get the worker in proportion to their weights, whatever the sizes of their requests, and none
// starves. A priority that does not use its round loses it, but keeps one full share. So rare urgent work runs at once.
class PriorityRounds {
 public:
  struct Options {
    // [low, normal, high], each at least 1.
    std::array<int64_t, kPriorities> weights = {1, 4, 16};
    // The share of a weight of 1 in a round. A smaller quantum shares more evenly over short times. Requests longer
    // than it are made up for in later rounds.
    absl::Duration quantum = absl::Milliseconds(10);
  };

  explicit PriorityRounds(const Options& options) : options_(options) { ClearDebts(); }

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // The next priority of those that wait: the highest that has credit, or that will have it after the fewest rounds;
  // nullopt if none waits.
  std::optional<Priority> Next(const std::array<bool, kPriorities>& waiting) const;
  // Begins as many rounds as this priority needs to have credit.
  void BeginRounds(Priority next);

  // Charges worker time to a priority; a negative cost is a refund.
  void Charge(Priority priority, absl::Duration cost);
  // How much of the worker's time priority `other` gets, for each second that `priority` gets, while both wait.
  double Relative(Priority other, Priority priority) const {
    return absl::FDivDuration(Share(static_cast<size_t>(other)), Share(static_cast<size_t>(priority)));
  }

  // Clears all debts when no work waits: a share is a share of the time for which other work waits.
  void ClearDebts();

 private:
  absl::Duration Share(size_t priority) const { return options_.quantum * options_.weights[priority]; }
  int64_t RoundsUntil(Priority next) const;

  const Options options_;
  std::array<absl::Duration, kPriorities> credit_;  // each at most Share()
};

// The order of the queued work of one priority: clients by virtual time, and each client's work by due time.
//
// A client's virtual time starts at the common virtual clock when the client arrives, and advances by the worker time
// that its work takes. The clock advances by the worker time of all clients' completed work, divided by the number of
// clients with queued or running work. So a prediction changes the position of one client only. The client with the
// smallest virtual time goes first. So clients that wait share the worker's time evenly, however large and however many
// their requests are. A client that returns after more than a moment starts at the clock and has saved nothing up. A
// client that is ahead of the clock stays ahead until the clock passes it.
//
// Invariant: a client with queued work is in ready_, unless it is throttled. A client without queued or running work is
// in resting_, until the clock has passed it, or until too many clients further ahead are remembered.
class ClientOrder {
 public:
  // Identifies a piece of work; later work has a larger handle.
  using Handle = int64_t;

  void Add(Handle work, const std::string& client, absl::Time due);
  // Removes work that did not run. REQUIRES: it was added with this client and time, and is still there.
  void Remove(Handle work, const std::string& client, absl::Time due);
  // Takes work out to run it, and charges its cost. Returns the number of clients that shared the clock, for Complete.
  // REQUIRES: as Remove.
  int64_t Take(Handle work, const std::string& client, absl::Time due, absl::Duration cost);
  // Work that was taken and charged has ended; it took `cost` of the worker's time.
  void Complete(const std::string& client, absl::Duration charged, absl::Duration cost, int64_t shared_by);
  // Sets whether First skips this client's work. The setting is removed with the client.
  void SetThrottled(const std::string& client, bool throttled);

  // The first work in order that matches; nullopt if none does.
  std::optional<Handle> First(absl::FunctionRef<bool(Handle)> suits) const;
  bool ready() const { return !ready_.empty(); }

  // The client's virtual time; that of a new client if it is not known.
  absl::Duration VirtualTimeOf(const std::string& client) const;
  // Visits the clients whose work First considers, in order.
  void ForEachReady(absl::FunctionRef<void(const std::string& client, absl::Duration virtual_time)> visit) const;

  // The number of clients that are remembered.
  int64_t clients() const { return static_cast<int64_t>(clients_.size()); }

 private:
  // A client's position: its virtual time, and a sequence number that breaks ties.
  using Place = std::pair<absl::Duration, int64_t>;
  struct Client {
    Place place;
    std::set<std::pair<absl::Time, Handle>> work;
    int64_t running = 0;
    bool throttled = false;

    bool active() const { return !work.empty() || running > 0; }
  };
  using Clients = std::map<std::string, Client>;

  // Leave takes a client out of ready_ and resting_ so that it can change; Return puts it back. A new client starts at
  // the clock.
  Clients::iterator Leave(const std::string& name);
  void Return(Clients::iterator client);
  void MoveTo(Client& client, absl::Duration virtual_time) { client.place = {virtual_time, next_place_++}; }
  void RemoveResting();

  Clients clients_;
  std::map<Place, Clients::iterator> ready_;
  std::map<Place, Clients::iterator> resting_;
  int64_t active_ = 0;  // clients whose work waits or runs
  absl::Duration clock_;
  int64_t next_place_ = 0;
};

// Combines both: First asks the priorities in the order of PriorityRounds, and each priority's ClientOrder.
//
//   Add -> waits -> First, Take -> runs -> Complete
//            \_____ Remove: did not run, and cost nothing
//
// Take charges the predicted cost to the work's priority and client at once. Complete charges the difference to the
// actual cost, so a wrong prediction distorts the shares only briefly. Priorities are charged only for work that is
// taken while other work waits. When no work waits, their debts are cleared.
class WorkOrder {
 public:
  using Handle = ClientOrder::Handle;

  struct Options {
    PriorityRounds::Options rounds = {};
    // How much of one client's work runs at once; the rest waits, and other clients' work passes it.
    int64_t max_running_per_client = std::numeric_limits<int64_t>::max();
  };

  // The work of all clients, or of one.
  struct Load {
    int64_t waiting = 0;
    absl::Duration waiting_cost = absl::ZeroDuration();        // predicted
    absl::Duration waiting_start_cost = absl::ZeroDuration();  // part of it
    int64_t running = 0;
  };

  explicit WorkOrder(const Options& options);

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Each handle is larger than the ones before.
  Handle Add(WorkAttributes attributes);
  // The next work that matches, which stays in the order; nullopt if none does. A priority without matching work gives
  // its turn to the others, and rounds begin without it.
  std::optional<Handle> First(absl::FunctionRef<bool(Handle)> suits);
  std::optional<Handle> First() {
    return First([](Handle) { return true; });
  }
  // The next work that matches and can run together with the work just taken. It begins no round, so work that could
  // not join keeps the next turn.
  std::optional<Handle> FirstToJoin(absl::FunctionRef<bool(Handle)> suits) const;
  // The work runs now. Pass the attributes to Complete.
  WorkAttributes Take(Handle work);
  // Whether the client of this waiting work is below its limit of running work.
  bool MayRun(Handle work) const;
  // Updates the predicted costs of waiting work.
  void SetCost(Handle work, absl::Duration cost, absl::Duration start_cost = absl::ZeroDuration());
  // Removes work that did not run.
  void Remove(Handle work);
  // Work that was taken has ended; it took `cost` of the worker's time.
  void Complete(const WorkAttributes& taken, absl::Duration cost);

  const Load& load() const { return load_; }
  Load LoadOf(const std::string& client) const;
  // The number of clients with waiting or running work.
  int64_t active_clients() const { return static_cast<int64_t>(loads_.size()); }
  // The waiting work that would run before `next` if `next` were added now and nothing after it. The work of other
  // clients and priorities counts as far as the order lets it go first. It counts in `waiting` up to an equal number
  // for each client, whatever the costs. `running` is 0.
  Load Ahead(const WorkAttributes& next) const;

 private:
  ClientOrder& Clients(const WorkAttributes& attributes) { return clients_[static_cast<size_t>(attributes.priority)]; }
  // The loads that count work with these attributes.
  std::array<Load*, 4> LoadsOf(const WorkAttributes& attributes);
  Load AheadInPriority(const WorkAttributes& next) const;
  // Removes the work from the waiting counts.
  WorkAttributes RemoveWaiting(Handle work);
  void CountRunning(const std::string& client, int64_t more);
  void ThrottleIfAtLimit(const std::string& client);
  void RemoveIfIdle(const std::string& client);

  const Options options_;
  PriorityRounds rounds_;
  std::array<ClientOrder, kPriorities> clients_;
  std::map<Handle, WorkAttributes> waiting_;
  Load load_;
  std::array<Load, kPriorities> load_of_priority_;  // only waiting work
  // Of the clients with waiting or running work; `of_priority` has only their waiting work.
  struct ClientLoad {
    Load all;
    std::array<Load, kPriorities> of_priority;
  };
  std::map<std::string, ClientLoad> loads_;
  Handle next_handle_ = 0;
  int64_t waiting_period_ = 1;  // the current waiting period, from 1; a period ends when no work waits
};

}  // namespace longshort::core
