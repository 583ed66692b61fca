#include "core/schedule/work_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort::core {
namespace {

// A client that sends its next request after the previous answer was not away. A client that returns before the clock
// has advanced by this much keeps its position.
constexpr absl::Duration kMaxPause = absl::Milliseconds(100);

// Maximum number of remembered clients without queued or running work. A limit is needed because clients choose their
// names freely, and work that takes no time does not advance the clock.
constexpr size_t kMaxResting = 4096;

// Adds the part of the waiting work that is within `share`, by number and by cost.
void AddShare(const WorkOrder::Load& from, const WorkOrder::Load& share, WorkOrder::Load& to) {
  to.waiting += std::min(from.waiting, share.waiting);
  if (from.waiting_cost <= absl::ZeroDuration()) return;
  const double fraction = std::min(1.0, absl::FDivDuration(share.waiting_cost, from.waiting_cost));
  to.waiting_cost += from.waiting_cost * fraction;
  to.waiting_start_cost += from.waiting_start_cost * fraction;
}

}  // namespace

absl::Status PriorityRounds::Check(const Options& options) {
  for (const int64_t weight : options.weights) {
    if (weight < 1 || weight > 1'000'000) {
      return absl::InvalidArgumentError(
          absl::StrCat("a priority's weight is ", weight, ", must be between 1 and 1000000"));
    }
  }
  if (options.quantum > absl::ZeroDuration() && options.quantum <= absl::Hours(1)) return absl::OkStatus();
  return absl::InvalidArgumentError("the priorities' quantum must be positive, and at most an hour");
}

std::optional<Priority> PriorityRounds::Next(const std::array<bool, kPriorities>& waiting) const {
  std::optional<Priority> next;
  for (const Priority priority : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
    if (!waiting[static_cast<size_t>(priority)]) continue;
    if (!next.has_value() || RoundsUntil(priority) < RoundsUntil(*next)) next = priority;
  }
  return next;
}

void PriorityRounds::BeginRounds(Priority next) {
  const int64_t rounds = RoundsUntil(next);
  if (rounds == 0) return;
  for (size_t i = 0; i < kPriorities; ++i) credit_[i] = std::min(Share(i), credit_[i] + Share(i) * rounds);
}

int64_t PriorityRounds::RoundsUntil(Priority next) const {
  const auto i = static_cast<size_t>(next);
  absl::Duration rest;
  return credit_[i] > absl::ZeroDuration() ? 0 : absl::IDivDuration(-credit_[i], Share(i), &rest) + 1;
}

void PriorityRounds::Charge(Priority priority, absl::Duration cost) {
  const auto i = static_cast<size_t>(priority);
  credit_[i] = std::min(Share(i), credit_[i] - cost);
}

void PriorityRounds::ClearDebts() {
  for (size_t i = 0; i < kPriorities; ++i) credit_[i] = Share(i);
}

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

WorkOrder::WorkOrder(const Options& options) : options_(options), rounds_(options.rounds) {}

absl::Status WorkOrder::Check(const Options& options) {
  if (options.max_running_per_client < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_running_per_client is ", options.max_running_per_client, ", must be at least 1"));
  }
  return PriorityRounds::Check(options.rounds);
}

WorkOrder::Handle WorkOrder::Add(WorkAttributes attributes) {
  const Handle work = next_handle_++;
  for (Load* load : LoadsOf(attributes)) {
    ++load->waiting;
    load->waiting_cost += attributes.cost;
    load->waiting_start_cost += attributes.start_cost;
  }
  Clients(attributes).Add(work, attributes.client, attributes.due);
  ThrottleIfAtLimit(attributes.client);
  waiting_.emplace(work, std::move(attributes));
  return work;
}

std::optional<WorkOrder::Handle> WorkOrder::First(absl::FunctionRef<bool(Handle)> suits) {
  const std::optional<Handle> first = FirstToJoin(suits);
  if (first.has_value()) rounds_.BeginRounds(waiting_.at(*first).priority);
  return first;
}

std::optional<WorkOrder::Handle> WorkOrder::FirstToJoin(absl::FunctionRef<bool(Handle)> suits) const {
  std::array<bool, kPriorities> waiting;
  for (size_t i = 0; i < kPriorities; ++i) waiting[i] = clients_[i].ready();
  while (const auto priority = rounds_.Next(waiting)) {
    const auto i = static_cast<size_t>(*priority);
    if (const auto work = clients_[i].First(suits); work.has_value()) return work;
    waiting[i] = false;
  }
  return std::nullopt;
}

WorkAttributes WorkOrder::Take(Handle work) {
  WorkAttributes attributes = RemoveWaiting(work);
  attributes.shared_by = Clients(attributes).Take(work, attributes.client, attributes.due, attributes.cost);
  const bool others_wait = load_.waiting > 0;
  if (others_wait) rounds_.Charge(attributes.priority, attributes.cost);
  attributes.charged_period = others_wait ? waiting_period_ : 0;
  CountRunning(attributes.client, 1);
  return attributes;
}

bool WorkOrder::MayRun(Handle work) const {
  return loads_.at(waiting_.at(work).client).all.running < options_.max_running_per_client;
}

void WorkOrder::SetCost(Handle work, absl::Duration cost, absl::Duration start_cost) {
  WorkAttributes& attributes = waiting_.at(work);
  for (Load* load : LoadsOf(attributes)) {
    load->waiting_cost += cost - attributes.cost;
    load->waiting_start_cost += start_cost - attributes.start_cost;
  }
  attributes.cost = cost;
  attributes.start_cost = start_cost;
}

void WorkOrder::Remove(Handle work) {
  const WorkAttributes attributes = RemoveWaiting(work);
  Clients(attributes).Remove(work, attributes.client, attributes.due);
  RemoveIfIdle(attributes.client);
}

void WorkOrder::Complete(const WorkAttributes& taken, absl::Duration cost) {
  Clients(taken).Complete(taken.client, taken.cost, cost, taken.shared_by);
  if (taken.charged_period == waiting_period_) rounds_.Charge(taken.priority, cost - taken.cost);
  CountRunning(taken.client, -1);
  RemoveIfIdle(taken.client);
}

WorkOrder::Load WorkOrder::LoadOf(const std::string& client) const {
  const auto load = loads_.find(client);
  return load == loads_.end() ? Load() : load->second.all;
}

WorkOrder::Load WorkOrder::Ahead(const WorkAttributes& next) const {
  Load ahead = AheadInPriority(next);
  const Load before_in_priority = ahead;
  for (const Priority other : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
    if (other == next.priority) continue;
    const double relative = rounds_.Relative(other, next.priority);
    AddShare(
        load_of_priority_[static_cast<size_t>(other)],
        {.waiting = static_cast<int64_t>(std::ceil(relative * static_cast<double>(before_in_priority.waiting + 1))),
         .waiting_cost = before_in_priority.waiting_cost * relative},
        ahead);
  }
  return ahead;
}

WorkOrder::Load WorkOrder::AheadInPriority(const WorkAttributes& next) const {
  const auto priority = static_cast<size_t>(next.priority);
  const auto load_of = [&](const std::string& client) {
    const auto load = loads_.find(client);
    return load == loads_.end() ? Load() : load->second.of_priority[priority];
  };
  Load ahead = load_of(next.client);
  const Load own = ahead;
  const absl::Duration turn = clients_[priority].VirtualTimeOf(next.client) + own.waiting_cost;
  clients_[priority].ForEachReady([&](const std::string& client, absl::Duration virtual_time) {
    if (client == next.client) return;
    const Load others = load_of(client);
    Load share = {.waiting = own.waiting + 1};
    // A client whose turn comes first runs at least one piece of its work.
    if (virtual_time <= turn) share.waiting_cost = turn - virtual_time + others.waiting_cost / others.waiting;
    AddShare(others, share, ahead);
  });
  return ahead;
}

std::array<WorkOrder::Load*, 4> WorkOrder::LoadsOf(const WorkAttributes& attributes) {
  ClientLoad& client = loads_[attributes.client];
  const auto priority = static_cast<size_t>(attributes.priority);
  return {&load_, &load_of_priority_[priority], &client.all, &client.of_priority[priority]};
}

WorkAttributes WorkOrder::RemoveWaiting(Handle work) {
  const auto leaving = waiting_.find(work);
  WorkAttributes attributes = std::move(leaving->second);
  waiting_.erase(leaving);
  for (Load* load : LoadsOf(attributes)) {
    --load->waiting;
    load->waiting_cost -= attributes.cost;
    load->waiting_start_cost -= attributes.start_cost;
  }
  if (load_.waiting == 0) {
    rounds_.ClearDebts();
    ++waiting_period_;
  }
  return attributes;
}

void WorkOrder::CountRunning(const std::string& client, int64_t more) {
  load_.running += more;
  loads_[client].all.running += more;
  ThrottleIfAtLimit(client);
}

void WorkOrder::ThrottleIfAtLimit(const std::string& client) {
  const bool busy = loads_[client].all.running >= options_.max_running_per_client;
  for (ClientOrder& clients : clients_) clients.SetThrottled(client, busy);
}

void WorkOrder::RemoveIfIdle(const std::string& client) {
  const auto load = loads_.find(client);
  if (load->second.all.waiting == 0 && load->second.all.running == 0) loads_.erase(load);
}

}  // namespace longshort::core
