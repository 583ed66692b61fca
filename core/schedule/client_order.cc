#include "core/schedule/client_order.h"

#include <algorithm>

namespace longshort::core {
namespace {

// A client that sends its next request when it has the last answer was not away: who comes back before the clock has
// gone on by this much keeps its place.
constexpr absl::Duration kMoment = absl::Milliseconds(100);

// Of those of whom nothing waits or runs: names cost nothing, and work that takes no time does not move the clock.
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
  const int64_t shared_by = active_ + 1;  // this one has left for the change
  MoveTo(client->second, client->second.place.first + cost);
  Return(client);
  return shared_by;
}

void ClientOrder::Settle(const std::string& name, absl::Duration charged, absl::Duration cost, int64_t shared_by) {
  const auto client = Leave(name);
  // What was charged too little is shared by those who came meanwhile, too.
  clock_ += std::min(cost, charged) / shared_by;
  if (cost > charged) clock_ += (cost - charged) / std::max(shared_by, active_ + 1);
  MoveTo(client->second, client->second.place.first + cost - charged);
  --client->second.running;
  Return(client);
}

void ClientOrder::HoldBack(const std::string& name, bool held_back) {
  if (const auto known = clients_.find(name); known == clients_.end() || known->second.held_back == held_back) return;
  const auto client = Leave(name);
  client->second.held_back = held_back;
  if (!held_back) MoveTo(client->second, std::max(client->second.place.first, clock_));
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
  } else if (!client->second.work.empty() && !client->second.held_back) {
    ready_.emplace(client->second.place, client);
  }
  ForgetResting();
}

void ClientOrder::ForgetResting() {
  while (!resting_.empty() && (resting_.begin()->first.first + kMoment <= clock_ || resting_.size() > kMaxResting)) {
    clients_.erase(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
}

}  // namespace longshort::core
