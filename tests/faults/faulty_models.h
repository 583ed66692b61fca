// Models that fail according to a plan. They wrap real models or fakes, for tests of the engines' error handling.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "models/classifier.h"
#include "models/families/load_model.h"
#include "models/model.h"

namespace longshort {

// Which of the steps and batches of all models with this plan go wrong, counted from 1; 0 is none.
struct FaultPlan {
  int64_t throw_every = 0;  // instead of being run
  int64_t fail_every = 0;   // with INTERNAL, after having been run: the pages have been written
  int64_t stall_every = 0;  // run, but only after `stall`
  absl::Duration stall = absl::Milliseconds(100);
  int64_t no_replica_every = 0;  // replicas that are not to be had
};

// Reads "throw=37,fail=11,stall=50,stall-ms=200,no-replica=3"; all may be left out.
// Errors: INVALID_ARGUMENT naming what it does not understand.
absl::StatusOr<FaultPlan> ParseFaultPlan(const std::string& text);

// What has gone wrong so far, of all models that share it. Thread-safe.
struct FaultCounts {
  std::atomic<int64_t> runs = 0;
  std::atomic<int64_t> replicas = 0;
  std::atomic<int64_t> faults = 0;
};

models::LanguageModelWeights WithFaults(models::LanguageModelWeights weights, const FaultPlan& plan,
                                        std::shared_ptr<FaultCounts> counts);
models::ClassifierWeights WithFaults(models::ClassifierWeights weights, const FaultPlan& plan,
                                     std::shared_ptr<FaultCounts> counts);

// The model of either kind fails by the plan from now on.
void AddFaults(const FaultPlan& plan, models::LoadedModel& loaded);

}  // namespace longshort
