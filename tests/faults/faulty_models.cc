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

  absl::Status CheckReplica() {
    if (!IsTurn(++counts_->replicas, plan_.no_replica_every)) return absl::OkStatus();
    ++counts_->faults;
    return absl::ResourceExhaustedError("injected: no replica");
  }

  const FaultPlan& plan() const { return plan_; }
  const std::shared_ptr<FaultCounts>& counts() const { return counts_; }

 private:
  const FaultPlan plan_;
  const std::shared_ptr<FaultCounts> counts_;
};

class FaultyLanguageModel final : public LanguageModel {
 public:
  FaultyLanguageModel(std::unique_ptr<LanguageModel> model, const FaultPlan& plan, std::shared_ptr<FaultCounts> counts)
      : model_(std::move(model)), faults_(plan, std::move(counts)) {}

  const LanguageModelInfo& info() const override { return model_->info(); }
  absl::StatusOr<std::unique_ptr<LanguageModel>> Replicate(const WorkerDevice& device) const override {
    LS_RETURN_IF_ERROR(faults_.CheckReplica());
    LS_ASSIGN_OR_RETURN(std::unique_ptr<LanguageModel> replica, model_->Replicate(device));
    return WithFaults(std::move(replica), faults_.plan(), faults_.counts());
  }
  // Without faults: what runs is a replica, and this one is asked for its sizes.
  const LanguageModel& On(const WorkerDevice& device) const override { return model_->On(device); }
  CachePages PageBytes() const override { return model_->PageBytes(); }
  int64_t WorkspaceBytes() const override { return model_->WorkspaceBytes(); }
  absl::Status AllocateCache(const CachePages& pages) override { return model_->AllocateCache(pages); }
  absl::StatusOr<StepResult> Step(absl::Span<const Slice> slices) override {
    return faults_.Run<StepResult>([&] { return model_->Step(slices); });
  }
  void Rest() override { model_->Rest(); }
  absl::Status CopyPage(PageKind kind, PageId from, PageId to) override { return model_->CopyPage(kind, from, to); }
  std::string CacheLayout() const override { return model_->CacheLayout(); }
  absl::StatusOr<std::string> ReadPage(PageKind kind, PageId page, const PageRows& rows) const override {
    return model_->ReadPage(kind, page, rows);
  }
  absl::Status WritePage(PageKind kind, PageId page, std::string_view bytes) override {
    return model_->WritePage(kind, page, bytes);
  }

 private:
  const std::unique_ptr<LanguageModel> model_;
  mutable Faults faults_;
};

class FaultyClassifier final : public Classifier {
 public:
  FaultyClassifier(std::unique_ptr<Classifier> classifier, const FaultPlan& plan, std::shared_ptr<FaultCounts> counts)
      : classifier_(std::move(classifier)), faults_(plan, std::move(counts)) {}

  const ClassifierInfo& info() const override { return classifier_->info(); }
  absl::StatusOr<std::unique_ptr<Classifier>> Replicate(const WorkerDevice& device) const override {
    LS_RETURN_IF_ERROR(faults_.CheckReplica());
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Classifier> replica, classifier_->Replicate(device));
    return WithFaults(std::move(replica), faults_.plan(), faults_.counts());
  }
  absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) override {
    return faults_.Run<ClassifierResult>([&] { return classifier_->Classify(items); });
  }
  void Rest() override { classifier_->Rest(); }

 private:
  const std::unique_ptr<Classifier> classifier_;
  mutable Faults faults_;
};

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

std::unique_ptr<LanguageModel> WithFaults(std::unique_ptr<LanguageModel> model, const FaultPlan& plan,
                                          std::shared_ptr<FaultCounts> counts) {
  return std::make_unique<FaultyLanguageModel>(std::move(model), plan, std::move(counts));
}

std::unique_ptr<Classifier> WithFaults(std::unique_ptr<Classifier> classifier, const FaultPlan& plan,
                                       std::shared_ptr<FaultCounts> counts) {
  return std::make_unique<FaultyClassifier>(std::move(classifier), plan, std::move(counts));
}

void AddFaults(const FaultPlan& plan, LoadedModel& loaded) {
  auto counts = std::make_shared<FaultCounts>();
  if (auto* language = std::get_if<LoadedLanguageModel>(&loaded); language != nullptr) {
    language->model = WithFaults(std::move(language->model), plan, std::move(counts));
  } else {
    auto& classifier = std::get<LoadedClassifier>(loaded);
    classifier.classifier = WithFaults(std::move(classifier.classifier), plan, std::move(counts));
  }
}

}  // namespace longshort
