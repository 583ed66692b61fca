// The order of all work: priorities by weighted deficit round-robin, clients of a priority by virtual time, work of a
// client by due time and then by arrival.
//
//   Add -> waits -> First, Take -> runs -> Complete
//            \_____ Remove: did not run, and cost nothing
//
// Take charges the predicted cost to the work's priority and client at once. Complete charges the difference to the
// actual cost, so a wrong prediction distorts the shares only briefly. Priorities are charged only for work that is
// taken while other work waits. When no work waits, their debts are cleared.
//
// Thread: not thread-safe; the owner guards it. All calls take O(log n); First is also linear in the work that it skips
// because it does not match.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/client_order.h"
#include "core/schedule/priority_rounds.h"
#include "core/schedule/work_attributes.h"

namespace longshort::core {

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
