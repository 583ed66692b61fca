#include "core/schedule/work_order.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::work_order_test {

using ::testing::ElementsAre;

absl::Time At(int64_t milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

WorkAttributes AttributesOf(Priority priority, const std::string& client, int64_t cost_milliseconds,
                            absl::Time due = absl::InfiniteFuture()) {
  return {.priority = priority, .client = client, .due = due, .cost = absl::Milliseconds(cost_milliseconds)};
}

// Takes and completes the next, which took as long as was predicted.
WorkAttributes RunNext(WorkOrder& order) {
  const auto next = order.First();
  EXPECT_TRUE(next.has_value());
  const WorkAttributes attributes = order.Take(*next);
  order.Complete(attributes, attributes.cost);
  return attributes;
}

TEST(WorkOrder, WhatIsDueFirstGoesFirstAndEqualsAsTheyCame) {
  WorkOrder order({});
  for (const int64_t due : {30, 10, 20, 10}) order.Add(AttributesOf(Priority::kNormal, "a", 1, At(due)));
  std::vector<WorkOrder::Handle> taken;
  while (const auto next = order.First()) {
    taken.push_back(*next);
    order.Take(*next);
  }
  EXPECT_THAT(taken, ElementsAre(1, 3, 2, 0));
}

TEST(WorkOrder, WorkThatDoesNotSuitIsPassedOverAndKeepsItsPlace) {
  WorkOrder order({});
  const WorkOrder::Handle first = order.Add(AttributesOf(Priority::kNormal, "a", 1, At(1)));
  const WorkOrder::Handle second = order.Add(AttributesOf(Priority::kNormal, "a", 1, At(2)));
  EXPECT_EQ(order.First([first](WorkOrder::Handle work) { return work != first; }), second);
  order.Take(second);
  EXPECT_EQ(order.First(), first);
  EXPECT_EQ(order.First([](WorkOrder::Handle) { return false; }), std::nullopt);
}

TEST(WorkOrder, WhatIsRemovedLeavesNothingBehind) {
  WorkOrder order({});
  const WorkOrder::Handle work = order.Add(AttributesOf(Priority::kHigh, "a", 5));
  EXPECT_EQ(order.load().waiting_cost, absl::Milliseconds(5));
  EXPECT_EQ(order.LoadOf("a").waiting, 1);
  order.Remove(work);
  EXPECT_EQ(order.First(), std::nullopt);
  EXPECT_EQ(order.load().waiting, 0);
  EXPECT_EQ(order.load().waiting_cost, absl::ZeroDuration());
  EXPECT_EQ(order.LoadOf("a").waiting, 0);
}

// 1 : 4 : 16 of the worker's time, though the high ones' requests are the largest.
TEST(WorkOrder, PrioritiesShareTheWorkerByTheirWeightsWhateverTheSizesOfTheirRequests) {
  WorkOrder order({});
  const auto refill = [&order](Priority priority) {
    const int64_t cost = priority == Priority::kHigh ? 70 : priority == Priority::kNormal ? 9 : 2;
    order.Add(AttributesOf(priority, "", cost));
  };
  for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) refill(priority);
  std::map<Priority, absl::Duration> served;
  absl::Duration all;
  while (all < absl::Minutes(30)) {
    const WorkAttributes attributes = RunNext(order);
    served[attributes.priority] += attributes.cost;
    all += attributes.cost;
    refill(attributes.priority);
  }
  EXPECT_NEAR(absl::FDivDuration(served[Priority::kLow], all), 1.0 / 21, 0.03 / 21);
  EXPECT_NEAR(absl::FDivDuration(served[Priority::kNormal], all), 4.0 / 21, 0.03 * 4 / 21);
  EXPECT_NEAR(absl::FDivDuration(served[Priority::kHigh], all), 16.0 / 21, 0.03 * 16 / 21);
}

// A round is 21 quanta of 10 ms; a low request of 50 ms overdraws by 4 quanta, so at the worst it waits for five
// rounds.
TEST(WorkOrder, TheLowestPriorityIsServedRegularlyUnderAFloodOfHigherOnes) {
  WorkOrder order({});
  for (int i = 0; i < 3; ++i) {
    order.Add(AttributesOf(Priority::kHigh, "flood", 7));
    order.Add(AttributesOf(Priority::kLow, "patient", 50));
  }
  absl::Duration since_low, longest;
  for (int i = 0; i < 100'000; ++i) {
    const WorkAttributes attributes = RunNext(order);
    since_low = attributes.priority == Priority::kLow ? absl::ZeroDuration() : since_low + attributes.cost;
    longest = std::max(longest, since_low);
    order.Add(attributes);
  }
  EXPECT_LE(longest, 5 * 16 * absl::Milliseconds(10) + absl::Milliseconds(7));
}

TEST(WorkOrder, AnUrgentRequestGoesBeforeTheFloodOfLowerOnesAtOnce) {
  WorkOrder order({});
  for (int i = 0; i < 1000; ++i) order.Add(AttributesOf(i % 2 == 0 ? Priority::kNormal : Priority::kLow, "flood", 30));
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j < 9; ++j) RunNext(order);
    order.Add(AttributesOf(Priority::kHigh, "urgent", 1));
    EXPECT_EQ(RunNext(order).client, "urgent");
  }
}

// The low one waits with its share unused and does not suit, until it does: then it goes within a round.
TEST(WorkOrder, APriorityOfWhichNothingSuitsDoesNotHoldUpTheRounds) {
  WorkOrder order({});
  const WorkOrder::Handle low = order.Add(AttributesOf(Priority::kLow, "", 1));
  order.Add(AttributesOf(Priority::kNormal, "", 10));
  order.Add(AttributesOf(Priority::kHigh, "", 50));
  const auto run_next = [&](bool low_suits) {
    const WorkAttributes attributes =
        order.Take(*order.First([&](WorkOrder::Handle work) { return low_suits || work != low; }));
    order.Complete(attributes, attributes.cost);
    return attributes;
  };
  absl::Duration of_normal, all;
  while (all < absl::Minutes(30)) {
    const WorkAttributes attributes = run_next(/*low_suits=*/false);
    if (attributes.priority == Priority::kNormal) of_normal += attributes.cost;
    all += attributes.cost;
    order.Add(attributes);
  }
  EXPECT_NEAR(absl::FDivDuration(of_normal, all), 4.0 / 20, 0.01);
  absl::Duration until_low;
  for (WorkAttributes attributes; (attributes = run_next(/*low_suits=*/true)).priority != Priority::kLow;
       order.Add(attributes)) {
    until_low += attributes.cost;
  }
  EXPECT_LE(until_low, (16 + 4) * absl::Milliseconds(10) + absl::Milliseconds(50 + 10));
}

TEST(WorkOrder, ClientsShareEvenlyHoweverLargeTheirRequestsAreAndHoweverManyTheySend) {
  WorkOrder order({});
  const std::map<std::string, int64_t> sizes = {{"small", 1}, {"medium", 20}, {"large", 700}};
  for (int i = 0; i < 500; ++i) order.Add(AttributesOf(Priority::kNormal, "small", 1));  // a flood
  for (const auto& [client, size] : sizes) order.Add(AttributesOf(Priority::kNormal, client, size));
  std::map<std::string, absl::Duration> served;
  absl::Duration all;
  while (all < absl::Minutes(30)) {
    const WorkAttributes attributes = RunNext(order);
    served[attributes.client] += attributes.cost;
    all += attributes.cost;
    order.Add(attributes);
  }
  for (const auto& [client, size] : sizes) {
    EXPECT_NEAR(absl::FDivDuration(served[client], all), 1.0 / 3, 0.01) << client;
  }
}

// "liar" is predicted to take 1 ms and takes 40.
TEST(WorkOrder, SharesFollowWhatWasMeasuredNotWhatWasPredicted) {
  WorkOrder order({});
  order.Add(AttributesOf(Priority::kNormal, "liar", 1));
  order.Add(AttributesOf(Priority::kNormal, "honest", 10));
  std::map<std::string, absl::Duration> served;
  for (int i = 0; i < 20'000; ++i) {
    const WorkAttributes attributes = order.Take(*order.First());
    const absl::Duration measured = attributes.client == "liar" ? absl::Milliseconds(40) : attributes.cost;
    served[attributes.client] += measured;
    order.Complete(attributes, measured);
    order.Add(attributes);
  }
  EXPECT_NEAR(absl::FDivDuration(served["liar"], served["honest"]), 1, 0.01);
}

// How many of normal priority run before the one of low priority.
int64_t RunUntilLow(WorkOrder& order) {
  int64_t normal = 0;
  while (RunNext(order).priority == Priority::kNormal) ++normal;
  return normal;
}

// A job that ran while no other waited took nothing from another client, however wrong its prediction was.
TEST(WorkOrder, APriorityOwesNothingForATimeWithAnEmptyQueue) {
  for (const int64_t charged_by_another_order : {0, 1, 2, 3}) {
    WorkOrder order({});
    WorkAttributes attributes = AttributesOf(Priority::kLow, "documents", 0);
    attributes.charged_period = charged_by_another_order;
    order.Add(attributes);
    const WorkAttributes alone = order.Take(*order.First());
    for (int i = 0; i < 1000; ++i) order.Add(AttributesOf(Priority::kNormal, "a", 10));
    for (int i = 0; i < 2; ++i) order.Add(AttributesOf(Priority::kLow, "documents", 10));
    EXPECT_EQ(RunUntilLow(order), 4);
    order.Complete(alone, absl::Seconds(100));
    EXPECT_EQ(RunUntilLow(order), 4);
  }
}

TEST(WorkOrder, APriorityGetsNothingBackThatItNeverPaid) {
  WorkOrder order({});
  std::vector<WorkAttributes> unpaid;
  for (int i = 0; i < 10; ++i) {
    order.Add(AttributesOf(Priority::kLow, "documents", 1000));
    unpaid.push_back(order.Take(*order.First()));
  }
  for (int i = 0; i < 1000; ++i) order.Add(AttributesOf(Priority::kNormal, "a", 10));
  for (int i = 0; i < 2; ++i) order.Add(AttributesOf(Priority::kLow, "documents", 100));
  EXPECT_EQ(RunUntilLow(order), 4);
  for (const WorkAttributes& attributes : unpaid) order.Complete(attributes, absl::ZeroDuration());
  EXPECT_GE(RunUntilLow(order), 36) << "ten rounds are to be made up for";
}

// One hour alone buys nothing, and an hour away neither: from the moment when both wait, they share evenly.
TEST(WorkOrder, NoClientSavesUpTimeWhileAway) {
  WorkOrder order({});
  order.Add(AttributesOf(Priority::kNormal, "busy", 10));
  for (int i = 0; i < 360'000; ++i) order.Add(RunNext(order));
  order.Add(AttributesOf(Priority::kNormal, "new", 10));
  int of_new = 0;
  for (int i = 0; i < 100; ++i) {
    const WorkAttributes attributes = RunNext(order);
    of_new += attributes.client == "new" ? 1 : 0;
    order.Add(attributes);
  }
  EXPECT_NEAR(of_new, 50, 1);
}

// A client that takes a new name for every request gets one client's place each time, and is forgotten.
TEST(WorkOrder, AFloodOfNamesNeitherStarvesAClientNorStaysInMemory) {
  WorkOrder order({});
  order.Add(AttributesOf(Priority::kNormal, "steady", 10));
  for (int i = 0; i < 9; ++i) order.Add(AttributesOf(Priority::kNormal, "name", 10));
  int of_steady = 0;
  for (int i = 0; i < 20'000; ++i) {
    WorkAttributes attributes = RunNext(order);
    if (attributes.client == "steady") {
      ++of_steady;
    } else {
      attributes.client = "name" + std::to_string(i);
    }
    order.Add(attributes);
  }
  EXPECT_NEAR(of_steady, 2'000, 50);  // one of ten that wait
}

TEST(WorkOrder, AClientAtItsLimitLetsOthersPassUntilItsWorkEnds) {
  WorkOrder order({.max_running_per_client = 2});
  for (int i = 0; i < 4; ++i) order.Add(AttributesOf(i == 3 ? Priority::kHigh : Priority::kNormal, "a", 1));
  order.Add(AttributesOf(Priority::kLow, "b", 1));
  const WorkAttributes first = order.Take(*order.First());
  order.Take(*order.First());
  EXPECT_EQ(first.priority, Priority::kHigh);
  EXPECT_EQ(order.Take(*order.First()).client, "b");
  EXPECT_EQ(order.First(), std::nullopt);
  EXPECT_EQ(order.load().waiting, 2);
  order.Complete(first, absl::Milliseconds(1));
  EXPECT_EQ(order.Take(*order.First()).client, "a");
  EXPECT_EQ(order.First(), std::nullopt);
}

// Some wait, some run, some leave: what is counted is what is there, and in the end nothing is.
TEST(WorkOrder, CountsWaitingAndRunningJobsThroughAMillionRandomEvents) {
  WorkOrder order({.max_running_per_client = 5});
  std::mt19937 random(1);
  std::map<WorkOrder::Handle, WorkAttributes> waiting;
  std::vector<WorkAttributes> running;
  const auto check = [&] {
    absl::Duration cost;
    int64_t of_client = 0;
    for (const auto& [handle, attributes] : waiting) {
      cost += attributes.cost;
      of_client += attributes.client == "3" ? 1 : 0;
    }
    ASSERT_EQ(order.load().waiting, static_cast<int64_t>(waiting.size()));
    ASSERT_EQ(order.load().waiting_cost, cost);
    ASSERT_EQ(order.load().running, static_cast<int64_t>(running.size()));
    ASSERT_EQ(order.LoadOf("3").waiting, of_client);
  };
  const auto complete = [&](size_t i) {
    order.Complete(running[i], absl::Milliseconds(random() % 200));
    running.erase(running.begin() + static_cast<int64_t>(i));
  };
  for (int event = 0; event < 1'000'000; ++event) {
    switch (random() % 5) {
      case 0:
        if (waiting.size() < 50) {
          const WorkAttributes attributes =
              AttributesOf(static_cast<Priority>(random() % 3), std::to_string(random() % 7),
                           static_cast<int64_t>(random() % 100), At(random() % 1000));
          waiting.emplace(order.Add(attributes), attributes);
        }
        break;
      case 1:
        if (const auto next = order.First(); next.has_value()) {
          ASSERT_EQ(waiting.erase(*next), 1u);
          running.push_back(order.Take(*next));
        }
        break;
      case 2:
        if (!running.empty()) complete(random() % running.size());
        break;
      case 3:
        if (!waiting.empty()) {
          const auto changes = std::next(waiting.begin(), static_cast<int64_t>(random() % waiting.size()));
          changes->second.cost = absl::Milliseconds(random() % 100);
          order.SetCost(changes->first, changes->second.cost);
        }
        break;
      default:
        if (waiting.size() > 20) {
          const auto leaves = std::next(waiting.begin(), static_cast<int64_t>(random() % waiting.size()));
          order.Remove(leaves->first);
          waiting.erase(leaves);
        }
    }
    if (event % 1000 == 0) check();
  }
  while (!running.empty()) complete(0);
  while (const auto next = order.First()) {
    waiting.erase(*next);
    order.Complete(order.Take(*next), absl::Milliseconds(1));
  }
  EXPECT_TRUE(waiting.empty());
  check();
}

TEST(WorkOrder, OptionsOutOfRangeAreRefused) {
  EXPECT_EQ(WorkOrder::Check({.rounds = {.weights = {1, 0, 1}}}),
            absl::InvalidArgumentError("a priority's weight is 0, must be between 1 and 1000000"));
  EXPECT_FALSE(WorkOrder::Check({.rounds = {.quantum = absl::ZeroDuration()}}).ok());
  EXPECT_EQ(WorkOrder::Check({.max_running_per_client = 0}),
            absl::InvalidArgumentError("max_running_per_client is 0, must be at least 1"));
  EXPECT_TRUE(WorkOrder::Check({}).ok());
}

TEST(WorkOrder, AllOfAClientsWorkIsAheadOfItsNextButOfAnotherClientOnlyWhatGoesFirst) {
  WorkOrder order({});
  for (int i = 0; i < 30; ++i) order.Add(AttributesOf(Priority::kNormal, "greedy", 1000));
  const auto ahead = [&order](const std::string& client, Priority priority = Priority::kNormal) {
    return order.Ahead(AttributesOf(priority, client, 1));
  };
  EXPECT_EQ(ahead("greedy").waiting, 30);
  EXPECT_EQ(ahead("greedy").waiting_cost, absl::Seconds(30));
  EXPECT_EQ(ahead("other").waiting, 1) << "they have equal turns, and greedy came first";
  EXPECT_EQ(ahead("other").waiting_cost, absl::Seconds(1));
  order.Take(*order.First());
  EXPECT_EQ(ahead("other").waiting_cost, absl::ZeroDuration()) << "greedy has had its turn";
  for (int i = 0; i < 5; ++i) order.Add(AttributesOf(Priority::kNormal, "other", 1000));
  EXPECT_EQ(ahead("other").waiting, 5 + 6);
  EXPECT_EQ(ahead("other").waiting_cost, absl::Seconds(5 + 5));
  // 34 of normal priority wait, which has 4 times the time of low priority, and a quarter of that of high priority.
  for (int i = 0; i < 2; ++i) order.Add(AttributesOf(Priority::kLow, "third", 1000));
  EXPECT_EQ(ahead("third", Priority::kLow).waiting, 2 + 12);
  EXPECT_NEAR(absl::ToDoubleSeconds(ahead("third", Priority::kLow).waiting_cost), 2 + 8, 1e-6);
  for (int i = 0; i < 8; ++i) order.Add(AttributesOf(Priority::kHigh, "third", 1000));
  EXPECT_EQ(ahead("third", Priority::kHigh).waiting, 8 + 3 + 1);
  EXPECT_NEAR(absl::ToDoubleSeconds(ahead("third", Priority::kHigh).waiting_cost), 8 + 2 + 0.5, 1e-6);
}

}  // namespace longshort::core::work_order_test
