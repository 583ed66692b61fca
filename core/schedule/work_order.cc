#include "core/schedule/work_order.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort::core {

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
  for (Load* load : {&load_, &loads_[attributes.client]}) {
    ++load->waiting;
    load->waiting_cost += attributes.cost;
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
  return loads_.at(waiting_.at(work).client).running < options_.max_running_per_client;
}

void WorkOrder::SetCost(Handle work, absl::Duration cost) {
  WorkAttributes& attributes = waiting_.at(work);
  for (Load* load : {&load_, &loads_[attributes.client]}) load->waiting_cost += cost - attributes.cost;
  attributes.cost = cost;
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
  return load == loads_.end() ? Load() : load->second;
}

WorkAttributes WorkOrder::RemoveWaiting(Handle work) {
  const auto leaving = waiting_.find(work);
  WorkAttributes attributes = std::move(leaving->second);
  waiting_.erase(leaving);
  for (Load* load : {&load_, &loads_[attributes.client]}) {
    --load->waiting;
    load->waiting_cost -= attributes.cost;
  }
  if (load_.waiting == 0) {
    rounds_.ClearDebts();
    ++waiting_period_;
  }
  return attributes;
}

void WorkOrder::CountRunning(const std::string& client, int64_t more) {
  load_.running += more;
  loads_[client].running += more;
  ThrottleIfAtLimit(client);
}

void WorkOrder::ThrottleIfAtLimit(const std::string& client) {
  const bool busy = loads_[client].running >= options_.max_running_per_client;
  for (ClientOrder& clients : clients_) clients.SetThrottled(client, busy);
}

void WorkOrder::RemoveIfIdle(const std::string& client) {
  const auto load = loads_.find(client);
  if (load->second.waiting == 0 && load->second.running == 0) loads_.erase(load);
}

}  // namespace longshort::core
