// A queue that owns its items and returns them in the order of all work (core/schedule/work_order.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "core/schedule/work_order.h"

namespace longshort::core {

// Owns an Item from Add until it is taken or removed.
//
// Thread: not thread-safe; the owner guards it.
template <typename Item>
class FairQueue {
 public:
  struct Taken {
    Item item;
    WorkAttributes attributes;  // for Complete
  };

  explicit FairQueue(const WorkOrder::Options& options) : order_(options) {}

  void Add(WorkAttributes attributes, Item item) { items_.emplace(order_.Add(std::move(attributes)), std::move(item)); }

  // Takes the first item in order that matches; it counts as running. nullopt if none does.
  std::optional<Taken> TakeFirst(absl::FunctionRef<bool(const Item&)> suits) {
    return Take(order_.First([&](WorkOrder::Handle handle) { return suits(items_.at(handle)); }));
  }
  std::optional<Taken> TakeFirst() {
    return TakeFirst([](const Item&) { return true; });
  }
  // Takes the next item that can run together with the one just taken; nullopt if none can.
  std::optional<Taken> TakeFirstToJoin(absl::FunctionRef<bool(const Item&)> suits) {
    return Take(order_.FirstToJoin([&](WorkOrder::Handle handle) { return suits(items_.at(handle)); }));
  }

  // The item that TakeFirst would take; begins rounds as TakeFirst does. Null if there is none.
  const Item* First(absl::FunctionRef<bool(const Item&)> suits) {
    const auto first = order_.First([&](WorkOrder::Handle handle) { return suits(items_.at(handle)); });
    return first.has_value() ? &items_.at(*first) : nullptr;
  }

  // The same item, without beginning rounds.
  const Item* Peek(absl::FunctionRef<bool(const Item&)> suits) const {
    const auto first = order_.FirstToJoin([&](WorkOrder::Handle handle) { return suits(items_.at(handle)); });
    return first.has_value() ? &items_.at(*first) : nullptr;
  }

  // Removes the items for which `leaves` is true. They did not run. Returns them in the order of arrival.
  std::vector<Item> RemoveIf(absl::FunctionRef<bool(const Item&)> leaves) {
    std::vector<Item> left;
    for (auto next = items_.begin(); next != items_.end();) {
      const auto item = next++;
      if (!leaves(item->second)) continue;
      order_.Remove(item->first);
      left.push_back(std::move(item->second));
      items_.erase(item);
    }
    return left;
  }
  std::vector<Item> RemoveAll() {
    return RemoveIf([](const Item&) { return true; });
  }

  struct Costs {
    absl::Duration cost;
    absl::Duration start_cost = absl::ZeroDuration();
  };
  // Updates the predicted costs of all waiting items.
  void SetCosts(absl::FunctionRef<Costs(const Item&)> costs_of) {
    for (const auto& [handle, item] : items_) {
      const Costs costs = costs_of(item);
      order_.SetCost(handle, costs.cost, costs.start_cost);
    }
  }

  // An item that was taken has ended; it took `cost` of the worker's time.
  void Complete(const WorkAttributes& taken, absl::Duration cost) { order_.Complete(taken, cost); }

  bool empty() const { return items_.empty(); }
  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  const WorkOrder::Load& load() const { return order_.load(); }
  WorkOrder::Load LoadOf(const std::string& client) const { return order_.LoadOf(client); }
  int64_t active_clients() const { return order_.active_clients(); }
  WorkOrder::Load Ahead(const WorkAttributes& next) const { return order_.Ahead(next); }
  // Visits the waiting items whose clients are below their limit of running work, in the order of arrival.
  void ForEachRunnable(absl::FunctionRef<void(const Item&)> visit) const {
    for (const auto& [handle, item] : items_) {
      if (order_.MayRun(handle)) visit(item);
    }
  }

 private:
  std::optional<Taken> Take(std::optional<WorkOrder::Handle> handle) {
    if (!handle.has_value()) return std::nullopt;
    auto item = items_.extract(*handle);
    return Taken{std::move(item.mapped()), order_.Take(*handle)};
  }

  WorkOrder order_;
  std::map<WorkOrder::Handle, Item> items_;
};

}  // namespace longshort::core
