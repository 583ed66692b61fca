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

// Owns a Thing from Add until it is taken or removed.
//
// Thread: not thread-safe; the owner guards it.
template <typename Thing>
class FairQueue {
 public:
  struct Taken {
    Thing thing;
    WorkAttributes attributes;  // for Settle
  };

  explicit FairQueue(const WorkOrder::Options& options) : order_(options) {}

  void Add(WorkAttributes attributes, Thing thing) {
    things_.emplace(order_.Add(std::move(attributes)), std::move(thing));
  }

  // Takes the first item in order that matches; it counts as running. nullopt if none does.
  std::optional<Taken> TakeFirst(absl::FunctionRef<bool(const Thing&)> suits) {
    return Take(order_.First([&](WorkOrder::Handle handle) { return suits(things_.at(handle)); }));
  }
  std::optional<Taken> TakeFirst() {
    return TakeFirst([](const Thing&) { return true; });
  }
  // Takes the next item that can run together with the one just taken; nullopt if none can.
  std::optional<Taken> TakeFirstToJoin(absl::FunctionRef<bool(const Thing&)> suits) {
    return Take(order_.FirstToJoin([&](WorkOrder::Handle handle) { return suits(things_.at(handle)); }));
  }

  // The item that TakeFirst would take; begins rounds as TakeFirst does. Null if there is none.
  const Thing* First(absl::FunctionRef<bool(const Thing&)> suits) {
    const auto first = order_.First([&](WorkOrder::Handle handle) { return suits(things_.at(handle)); });
    return first.has_value() ? &things_.at(*first) : nullptr;
  }

  // Removes the items for which `leaves` is true. They did not run. Returns them in the order of arrival.
  std::vector<Thing> RemoveIf(absl::FunctionRef<bool(const Thing&)> leaves) {
    std::vector<Thing> left;
    for (auto next = things_.begin(); next != things_.end();) {
      const auto thing = next++;
      if (!leaves(thing->second)) continue;
      order_.Remove(thing->first);
      left.push_back(std::move(thing->second));
      things_.erase(thing);
    }
    return left;
  }
  std::vector<Thing> RemoveAll() {
    return RemoveIf([](const Thing&) { return true; });
  }

  // Updates the predicted cost of all waiting items.
  void SetCosts(absl::FunctionRef<absl::Duration(const Thing&)> cost_of) {
    for (const auto& [handle, thing] : things_) order_.SetCost(handle, cost_of(thing));
  }

  // An item that was taken has ended; it took `cost` of the worker's time.
  void Settle(const WorkAttributes& taken, absl::Duration cost) { order_.Settle(taken, cost); }

  bool empty() const { return things_.empty(); }
  int64_t size() const { return static_cast<int64_t>(things_.size()); }
  const WorkOrder::Load& load() const { return order_.load(); }
  WorkOrder::Load LoadOf(const std::string& client) const { return order_.LoadOf(client); }
  // Visits the waiting items whose clients are below their limit of running work, in the order of arrival.
  void ForEachThatMayRun(absl::FunctionRef<void(const Thing&)> visit) const {
    for (const auto& [handle, thing] : things_) {
      if (order_.MayRun(handle)) visit(thing);
    }
  }

 private:
  std::optional<Taken> Take(std::optional<WorkOrder::Handle> handle) {
    if (!handle.has_value()) return std::nullopt;
    auto thing = things_.extract(*handle);
    return Taken{std::move(thing.mapped()), order_.Take(*handle)};
  }

  WorkOrder order_;
  std::map<WorkOrder::Handle, Thing> things_;
};

}  // namespace longshort::core
