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

WorkOrder::Handle WorkOrder::Add(Ticket ticket) {
  const Handle work = next_handle_++;
  for (Load* load : {&load_, &loads_[ticket.client]}) {
    ++load->waiting;
    load->waiting_cost += ticket.cost;
  }
  Clients(ticket).Add(work, ticket.client, ticket.due);
  HoldBackIfBusy(ticket.client);
  waiting_.emplace(work, std::move(ticket));
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

Ticket WorkOrder::Take(Handle work) {
  Ticket ticket = Leave(work);
  ticket.shared_by = Clients(ticket).Take(work, ticket.client, ticket.due, ticket.cost);
  const bool others_wait = load_.waiting > 0;
  if (others_wait) rounds_.Charge(ticket.priority, ticket.cost);
  ticket.charged_in = others_wait ? time_of_waiting_ : 0;
  CountRunning(ticket.client, 1);
  return ticket;
}

bool WorkOrder::MayRun(Handle work) const {
  return loads_.at(waiting_.at(work).client).running < options_.max_running_per_client;
}

void WorkOrder::SetCost(Handle work, absl::Duration cost) {
  Ticket& ticket = waiting_.at(work);
  for (Load* load : {&load_, &loads_[ticket.client]}) load->waiting_cost += cost - ticket.cost;
  ticket.cost = cost;
}

void WorkOrder::Remove(Handle work) {
  const Ticket ticket = Leave(work);
  Clients(ticket).Remove(work, ticket.client, ticket.due);
  ForgetIfGone(ticket.client);
}

void WorkOrder::Settle(const Ticket& taken, absl::Duration cost) {
  Clients(taken).Settle(taken.client, taken.cost, cost, taken.shared_by);
  if (taken.charged_in == time_of_waiting_) rounds_.Charge(taken.priority, cost - taken.cost);
  CountRunning(taken.client, -1);
  ForgetIfGone(taken.client);
}

WorkOrder::Load WorkOrder::LoadOf(const std::string& client) const {
  const auto load = loads_.find(client);
  return load == loads_.end() ? Load() : load->second;
}

Ticket WorkOrder::Leave(Handle work) {
  const auto leaving = waiting_.find(work);
  Ticket ticket = std::move(leaving->second);
  waiting_.erase(leaving);
  for (Load* load : {&load_, &loads_[ticket.client]}) {
    --load->waiting;
    load->waiting_cost -= ticket.cost;
  }
  if (load_.waiting == 0) {
    rounds_.Forgive();
    ++time_of_waiting_;
  }
  return ticket;
}

void WorkOrder::CountRunning(const std::string& client, int64_t more) {
  load_.running += more;
  loads_[client].running += more;
  HoldBackIfBusy(client);
}

void WorkOrder::HoldBackIfBusy(const std::string& client) {
  const bool busy = loads_[client].running >= options_.max_running_per_client;
  for (ClientOrder& clients : clients_) clients.HoldBack(client, busy);
}

void WorkOrder::ForgetIfGone(const std::string& client) {
  const auto load = loads_.find(client);
  if (load->second.waiting == 0 && load->second.running == 0) loads_.erase(load);
}

}  // namespace longshort::core
