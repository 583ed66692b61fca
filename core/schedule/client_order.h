// The order of the waiting work of one priority: clients by virtual time, and each one's work by when it is due.
//
// A client's virtual time is the worker time that its work took, counted from where the common virtual clock stood when
// it came. The clock goes on by the worker time that all clients' work took, once it has ended, divided among those
// whose work waits or runs: a prediction moves nobody but the client whose work it is of. The client that is furthest
// behind goes first. So clients who wait share the worker's time evenly, however large their requests are and however
// many they send. One who was away, for more than a moment, comes back at the clock, with nothing saved up; one who is
// ahead of the clock stays ahead until it is passed.
//
// All calls take O(log n), First besides the time for what does not suit.
//
// Thread: not thread-safe; the owner's mutex guards it.
// Invariant: a client whose work waits is in ready_, unless it is held back; one of which nothing waits or runs is in
// resting_, until the clock has passed it, or too many are there that are further ahead.
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
  // Of some work; later work has a larger one.
  using Handle = int64_t;

  void Add(Handle work, const std::string& client, absl::Time due);
  // It leaves without having run. REQUIRES: it was added with this client and time, and has not left since.
  void Remove(Handle work, const std::string& client, absl::Time due);
  // It leaves to run, and is charged this much of the worker's time. Returns by how many clients that was shared, for
  // Settle. REQUIRES: as Remove.
  int64_t Take(Handle work, const std::string& client, absl::Time due, absl::Duration cost);
  // What was taken and charged has ended, after `cost` of the worker's time.
  void Settle(const std::string& client, absl::Duration charged, absl::Duration cost, int64_t shared_by);
  // Whether the work of this client is to be passed over until this says otherwise. Forgotten with the client.
  void HoldBack(const std::string& client, bool held_back);

  // The first work in order that suits; nullopt if none does.
  std::optional<Handle> First(absl::FunctionRef<bool(Handle)> suits) const;
  bool ready() const { return !ready_.empty(); }

  // Clients that are remembered.
  int64_t clients() const { return static_cast<int64_t>(clients_.size()); }

 private:
  // Where a client stands: its virtual time, then who has stood there longest.
  using Place = std::pair<absl::Duration, int64_t>;
  struct Client {
    Place place;
    std::set<std::pair<absl::Time, Handle>> work;
    int64_t running = 0;
    bool held_back = false;

    bool active() const { return !work.empty() || running > 0; }
  };
  using Clients = std::map<std::string, Client>;

  // Out of ready_ and resting_ to be changed, and back to where it belongs. One that was not remembered stands at the
  // clock.
  Clients::iterator Leave(const std::string& name);
  void Return(Clients::iterator client);
  void MoveTo(Client& client, absl::Duration virtual_time) { client.place = {virtual_time, next_place_++}; }
  void ForgetResting();

  Clients clients_;
  std::map<Place, Clients::iterator> ready_;
  std::map<Place, Clients::iterator> resting_;
  int64_t active_ = 0;  // clients whose work waits or runs
  absl::Duration clock_;
  int64_t next_place_ = 0;
};

}  // namespace longshort::core
