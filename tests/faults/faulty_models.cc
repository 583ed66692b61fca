#include "tests/faults/faulty_models.h"

#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

bool IsTurn(int64_t number, int64_t every) { return every > 0 && number % every == 0; }

// The plan for one model after the other.
class Faults {
 public:
  Faults(const FaultPlan& plan, std::shared_ptr<FaultCounts> counts) : plan_(plan), counts_(std::move(counts)) {}

  template <typename Result>
  absl::StatusOr<Result> Run(const std::function<absl::StatusOr<Result>()>& run) {
    const int64_t number = ++counts_->runs;
    if (IsTurn(number, plan_.throw_every)) {
      ++counts_->faults;
      throw std::runtime_error(absl::StrCat("injected: run ", number));
    }
    if (IsTurn(number, plan_.stall_every)) absl::SleepFor(plan_.stall);
    absl::StatusOr<Result> result = run();
    if (!IsTurn(number, plan_.fail_every)) return result;
    ++counts_->faults;
    return absl::InternalError(absl::StrCat("injected: run ", number));
  }

  absl::Status CheckReplica() const {
    if (!IsTurn(++counts_->replicas, plan_.no_replica_every)) return absl::OkStatus();
    ++counts_->faults;
    return absl::ResourceExhaustedError("injected: no replica");
  }

 private:
  const FaultPlan plan_;
  const std::shared_ptr<FaultCounts> counts_;
};

class FaultyLanguageModel final : public models::LanguageModel {
 public:
  FaultyLanguageModel(std::unique_ptr<models::LanguageModel> model, const Faults& faults)
      : model_(std::move(model)), faults_(faults) {}

  const models::LanguageModelInfo& info() const override { return model_->info(); }
  absl::Status AllocateCache(const models::CachePages& pages) override { return model_->AllocateCache(pages); }
  absl::StatusOr<models::StepResult> Step(absl::Span<const models::Slice> slices) override {
    return faults_.Run<models::StepResult>([&] { return model_->Step(slices); });
  }
  void Rest() override { model_->Rest(); }
  absl::Status CopyPage(models::PageKind kind, models::PageId from, models::PageId to) override {
    return model_->CopyPage(kind, from, to);
  }
  absl::StatusOr<std::string> ReadPage(models::PageKind kind, models::PageId page,
                                       const models::PageRows& rows) const override {
    return model_->ReadPage(kind, page, rows);
  }
  absl::Status WritePage(models::PageKind kind, models::PageId page, std::string_view bytes) override {
    return model_->WritePage(kind, page, bytes);
  }

 private:
  const std::unique_ptr<models::LanguageModel> model_;
  Faults faults_;
};

class FaultyClassifier final : public models::Classifier {
 public:
  FaultyClassifier(std::unique_ptr<models::Classifier> classifier, const Faults& faults)
      : classifier_(std::move(classifier)), faults_(faults) {}

  const models::ClassifierInfo& info() const override { return classifier_->info(); }
  absl::StatusOr<models::ClassifierResult> Run(absl::Span<const models::ClassifierItem* const> items,
                                               models::ClassifierOutput output) override {
    return faults_.Run<models::ClassifierResult>([&] { return classifier_->Run(items, output); });
  }
  void Rest() override { classifier_->Rest(); }

 private:
  const std::unique_ptr<models::Classifier> classifier_;
  Faults faults_;
};

template <typename Faulty, typename Weights>
Weights WithFaults(Weights weights, const Faults& faults) {
  for (auto& place : weights.places) {
    const auto new_replica = [make = place.new_replica, faults](const models::WorkerDevice& worker) ->
        typename Weights::Replica {
          LS_RETURN_IF_ERROR(faults.CheckReplica());
          LS_ASSIGN_OR_RETURN(auto replica, make(worker));
          return std::make_unique<Faulty>(std::move(replica), faults);
        };
    place.new_replica = new_replica;
  }
  return weights;
}

}  // namespace

absl::StatusOr<FaultPlan> ParseFaultPlan(const std::string& text) {
  FaultPlan plan;
  const std::vector<std::string> entries = absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& entry : entries) {
    const std::pair<std::string, std::string> fault = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (!absl::SimpleAtoi(fault.second, &value) || value < 1) {
      return absl::InvalidArgumentError(absl::StrCat("'", entry, "' is not <fault>=<number>"));
    }
    if (fault.first == "throw") {
      plan.throw_every = value;
    } else if (fault.first == "fail") {
      plan.fail_every = value;
    } else if (fault.first == "stall") {
      plan.stall_every = value;
    } else if (fault.first == "stall-ms") {
      plan.stall = absl::Milliseconds(value);
    } else if (fault.first == "no-replica") {
      plan.no_replica_every = value;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no fault '", fault.first, "': throw, fail, stall, stall-ms, no-replica"));
    }
  }
  return plan;
}

models::LanguageModelWeights WithFaults(models::LanguageModelWeights weights, const FaultPlan& plan,
                                        std::shared_ptr<FaultCounts> counts) {
  return WithFaults<FaultyLanguageModel>(std::move(weights), Faults(plan, std::move(counts)));
}

models::ClassifierWeights WithFaults(models::ClassifierWeights weights, const FaultPlan& plan,
                                     std::shared_ptr<FaultCounts> counts) {
  return WithFaults<FaultyClassifier>(std::move(weights), Faults(plan, std::move(counts)));
}

void AddFaults(const FaultPlan& plan, models::LoadedModel& loaded) {
  const auto add = [&plan](auto& model) {
    model.weights = WithFaults(std::move(model.weights), plan, std::make_shared<FaultCounts>());
  };
  std::visit(add, loaded);
}

}  // namespace longshort
