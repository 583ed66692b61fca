// The tested models in a mix: several workers, small caches, steps that fail, and engines that are swapped for others
// with the same weights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/registry/model_registry.h"
#include "core/schedule/fair_pool.h"
#include "tests/base/temporary_directory.h"
#include "tests/determinism/happenings.h"
#include "tests/determinism/tested_models.h"
#include "tests/faults/faulty_models.h"

namespace longshort {

class SwappedModels final {
 public:
  // The arguments must outlive this. `threads`: of each worker.
  SwappedModels(const std::vector<TestedLanguageModel>& language_models,
                const std::vector<TestedClassifier>& classifiers, int threads, Happenings& happenings);

  // A holder may still use the model after it was swapped. Thread-safe.
  std::shared_ptr<core::ServedModel> Find(const std::string& name) const { return registry_->Find(name, 0).value(); }
  // Puts another engine in the place of the one that serves the model, unless there is no replica to be had for it; the
  // old one ends what it has. One thread at a time.
  void Swap(const std::string& name);

 private:
  absl::StatusOr<models::LoadedModel> Load(const std::string& directory) const;
  absl::StatusOr<core::ServedModel::Kind> Serve(const std::string& name, models::LoadedModel loaded);

  const std::vector<TestedLanguageModel>& language_models_;
  const std::vector<TestedClassifier>& classifiers_;
  const int threads_;
  Happenings& happenings_;
  const RealClock clock_;
  const TemporaryDirectory repository_;
  const std::shared_ptr<core::FairPool> pool_;
  std::map<std::string, std::shared_ptr<FaultCounts>> faults_;  // by model
  std::map<std::string, int64_t> versions_;                     // the one that serves
  std::unique_ptr<core::ModelRegistry> registry_;               // last: its engines use the others
};

}  // namespace longshort
