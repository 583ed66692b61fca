#include "core/schedule/client_order.h"

#include <algorithm>

namespace longshort::core {
namespace {

// A client that sends its next request after the previous answer was not away. A client that returns before the clock
// has advanced by this much keeps its position.
constexpr absl::Duration kMaxPause = absl::Milliseconds(100);

// Maximum number of remembered clients without queued or running work. A limit is needed because clients choose their
// names freely, and work that takes no time does not advance the clock.
constexpr size_t kMaxResting = 4096;

}  // namespace

void ClientOrder::Add(Handle work, const std::string& name, absl::Time due) {
  const auto client = Leave(name);
  client->second.work.emplace(due, work);
  Return(client);
}

void ClientOrder::Remove(Handle work, const std::string& name, absl::Time due) {
  const auto client = Leave(name);
  client->second.work.erase({due, work});
  Return(client);
}

int64_t ClientOrder::Take(Handle work, const std::string& name, absl::Time due, absl::Duration cost) {
  const auto client = Leave(name);
  client->second.work.erase({due, work});
  ++client->second.running;
  const int64_t shared_by = active_ + 1;  // Leave has uncounted this client
  MoveTo(client->second, client->second.place.first + cost);
  Return(client);
  return shared_by;
}

void ClientOrder::Complete(const std::string& name, absl::Duration charged, absl::Duration cost, int64_t shared_by) {
  const auto client = Leave(name);
  // Clients that arrived meanwhile also share the cost that was not charged in advance.
  clock_ += std::min(cost, charged) / shared_by;
  if (cost > charged) clock_ += (cost - charged) / std::max(shared_by, active_ + 1);
  MoveTo(client->second, client->second.place.first + cost - charged);
  --client->second.running;
  Return(client);
}

void ClientOrder::SetThrottled(const std::string& name, bool throttled) {
  if (const auto known = clients_.find(name); known == clients_.end() || known->second.throttled == throttled) return;
  const auto client = Leave(name);
  client->second.throttled = throttled;
  if (!throttled) MoveTo(client->second, std::max(client->second.place.first, clock_));
  Return(client);
}

std::optional<ClientOrder::Handle> ClientOrder::First(absl::FunctionRef<bool(Handle)> suits) const {
  for (const auto& [place, client] : ready_) {
    for (const auto& [due, work] : client->second.work) {
      if (suits(work)) return work;
    }
  }
  return std::nullopt;
}

absl::Duration ClientOrder::VirtualTimeOf(const std::string& name) const {
  const auto client = clients_.find(name);
  return client == clients_.end() ? clock_ : client->second.place.first;
}

void ClientOrder::ForEachReady(absl::FunctionRef<void(const std::string&, absl::Duration)> visit) const {
  for (const auto& [place, client] : ready_) visit(client->first, place.first);
}

ClientOrder::Clients::iterator ClientOrder::Leave(const std::string& name) {
  const auto [client, is_new] = clients_.try_emplace(name);
  if (is_new) MoveTo(client->second, clock_);
  if (client->second.active()) --active_;
  ready_.erase(client->second.place);
  resting_.erase(client->second.place);
  return client;
}

void ClientOrder::Return(Clients::iterator client) {
  if (client->second.active()) ++active_;
  if (!client->second.active()) {
    resting_.emplace(client->second.place, client);
  } else if (!client->second.work.empty() && !client->second.throttled) {
    ready_.emplace(client->second.place, client);
  }
  RemoveResting();
}

void ClientOrder::RemoveResting() {
  while (!resting_.empty() && (resting_.begin()->first.first + kMaxPause <= clock_ || resting_.size() > kMaxResting)) {
    clients_.erase(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
}

}  // namespace longshort::core
