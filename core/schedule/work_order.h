// The order of all work: priorities by weighted deficit round-robin, within one the clients by virtual time, within one
// what is due first, and among equals what came first.
//
//   Add -> waits -> First, Take -> runs -> Settle
//            \_____ Remove: left, and cost nothing
//
// What is taken is charged to its priority and client with its predicted cost at once, and with the difference to what
// it took when it is settled: so a wrong prediction costs nobody a share for long. Priorities are charged only for what
// is taken while something waits, and are forgiven when nothing does any more.
//
// Thread: none of its own; whoever owns it guards it. All calls take O(log n), First besides the time for what does not
// suit.
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
#include "core/schedule/ticket.h"

namespace longshort::core {

class WorkOrder {
 public:
  using Handle = ClientOrder::Handle;

  struct Options {
    PriorityRounds::Options rounds = {};
    // How much of one client's work runs at once; the rest waits and lets others pass.
    int64_t max_running_per_client = std::numeric_limits<int64_t>::max();
  };

  // What there is, of all clients or of one.
  struct Load {
    int64_t waiting = 0;
    absl::Duration waiting_cost = absl::ZeroDuration();  // predicted
    int64_t running = 0;
  };

  explicit WorkOrder(const Options& options);

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Each handle is larger than those before.
  Handle Add(Ticket ticket);
  // The next that suits; nullopt if none does. It stays where it is. A priority of which nothing suits leaves its turn
  // to the others, and the rounds begin without it.
  std::optional<Handle> First(absl::FunctionRef<bool(Handle)> suits);
  std::optional<Handle> First() {
    return First([](Handle) { return true; });
  }
  // The next that suits to join what was taken just now, and run together with it: no round begins for it, so who could
  // not join keeps the turn that comes next.
  std::optional<Handle> FirstToJoin(absl::FunctionRef<bool(Handle)> suits) const;
  // It runs now. The ticket is to be given to Settle.
  Ticket Take(Handle work);
  // Whether its client has less running than it may, while it waits.
  bool MayRun(Handle work) const;
  // What is predicted of it is another, while it waits.
  void SetCost(Handle work, absl::Duration cost);
  // It leaves without having run.
  void Remove(Handle work);
  // What was taken has ended, after this much of the worker's time.
  void Settle(const Ticket& taken, absl::Duration cost);

  const Load& load() const { return load_; }
  Load LoadOf(const std::string& client) const;

 private:
  ClientOrder& Clients(const Ticket& ticket) { return clients_[static_cast<size_t>(ticket.priority)]; }
  // Takes it out of what is counted as waiting.
  Ticket Leave(Handle work);
  void CountRunning(const std::string& client, int64_t more);
  void HoldBackIfBusy(const std::string& client);
  void ForgetIfGone(const std::string& client);

  const Options options_;
  PriorityRounds rounds_;
  std::array<ClientOrder, kPriorities> clients_;
  std::map<Handle, Ticket> waiting_;
  Load load_;
  std::map<std::string, Load> loads_;  // of the clients that have anything
  Handle next_handle_ = 0;
  int64_t time_of_waiting_ = 1;  // which one: they are numbered from 1, and end when nothing waits
};

}  // namespace longshort::core
