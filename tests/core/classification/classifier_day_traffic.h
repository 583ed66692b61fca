// The items that clients send to a classifier on a simulated day.
//
// All day: people with a few items a call, programs in a hurry (high priority, deadlines from 1 ms to an hour), a job
// that sends many at once (low priority). In a rush, four clients of normal priority, one of high and one of low each
// ask for more than their share, one of them with items that the model cannot stand, and most others stay away. A few
// times a greedy one sends all it has at once. Now and then someone leaves, or sends what the model cannot stand or
// what is not an image.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/classification/dynamic_batching_engine.h"
#include "core/schedule/work_attributes.h"
#include "tests/core/classification/classifier_day_machine.h"
#include "tests/core/fakes/simulated_day.h"

namespace longshort::core {

// Nothing stalls before this in any hour.
inline constexpr absl::Duration kFirstStall = absl::Minutes(41);

enum class DayItems { kDocuments, kImages };

struct ItemCounts {
  std::map<int64_t, int64_t> failures;  // items by the batches that failed with them
  // The longest wait while all that comes can be done and nothing stalls.
  std::array<absl::Duration, kPriorities> longest_wait_in_calm = {};
  // DayCounts::rush_work of all calls of a priority.
  std::map<int, std::array<absl::Duration, kPriorities>> rush_work_of_priority;
};

class ClassifierDayTraffic final : public DayClients {
 public:
  ClassifierDayTraffic(DayItems items, uint32_t seed, Timeline& timeline, const Clock& clock,
                       ClassifierDayMachine& machine, const DynamicBatchingEngine::Options& options);

  // One item comes, whatever becomes of it.
  void Probe();
  // Looks at those that ended.
  void HearEnds();

  const ItemCounts& item_counts() const { return item_counts_; }
  int64_t outstanding() const { return static_cast<int64_t>(outstanding_.size()); }

 private:
  using Items = std::vector<std::shared_ptr<ItemCall>>;
  // The waiting items, of all clients or of one.
  struct Waiting {
    int64_t items = 0;
    absl::Duration min;  // that they take, in batches as large as can be
    absl::Duration max;  // each alone
  };

  void Arrive() override;
  void ArriveInRush(size_t client) override;
  void ArriveGreedily() override;

  // So many items of one client.
  Items NewItems(const std::string& client, Priority priority, int64_t count);
  void Submit(const Items& items, int64_t retries);
  absl::Status SendAndCheck(const std::shared_ptr<ItemCall>& call, absl::Duration work_until_prepared);
  bool HasLearned() const;  // the engine, what items take
  Waiting WaitingOf(const std::string* client) const;
  // Fails the test unless the rules allow it.
  void CheckAdmission(const ItemCall& call, const Waiting& of_client);
  void CheckRefusal(const ItemCall& call, const absl::Status& refusal, const Waiting& all, const Waiting& of_client);
  void CheckTooLate(const ItemCall& call, absl::Time now) const;
  void CheckEnd(const ItemCall& call) const;
  void Count(const ItemCall& call);

  const DayItems items_;
  ClassifierDayMachine& machine_;
  const DynamicBatchingEngine::Options options_;
  int32_t ids_ = 0;
  std::set<std::shared_ptr<ItemCall>> outstanding_;
  ItemCounts item_counts_;
};

}  // namespace longshort::core
