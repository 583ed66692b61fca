// The order of the queued work of one priority: clients by virtual time, and each client's work by due time.
//
// A client's virtual time starts at the common virtual clock when the client arrives, and advances by the worker time
// that its work takes. The clock advances by the worker time of all clients' completed work, divided by the number of
// clients with queued or running work. So a prediction changes the position of one client only. The client with the
// smallest virtual time goes first. So clients that wait share the worker's time evenly, however large and however many
// their requests are. A client that returns after more than a moment starts at the clock and has saved nothing up. A
// client that is ahead of the clock stays ahead until the clock passes it.
//
// All calls take O(log n); First is also linear in the work that it skips because it does not match.
//
// Thread: not thread-safe; the owner's mutex guards it.
// Invariant: a client with queued work is in ready_, unless it is throttled. A client without queued or running work is
// in resting_, until the clock has passed it, or until too many clients further ahead are remembered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace longshort::core {

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

}  // namespace longshort::core
