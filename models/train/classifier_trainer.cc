#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/autocast_mode.h"
#include "ATen/core/Reduction.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"
#include "models/train/held_out_figures.h"
#include "models/train/trainable_classifier.h"

namespace longshort::models {
namespace {

// Computes matrix products and convolutions in bfloat16 during its lifetime (LibTorch's autocast), on the calling
// thread only. Weights, normalisations and softmax stay float32.
class Bfloat16Products final {
 public:
  // Does nothing unless `enabled`.
  explicit Bfloat16Products(bool enabled)
      : enabled_(enabled), previous_type_(at::autocast::get_autocast_dtype(at::kCPU)) {
    if (!enabled_) return;
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::increment_nesting();
  }
  ~Bfloat16Products() {
    if (!enabled_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, previous_type_);
  }
  Bfloat16Products(const Bfloat16Products&) = delete;
  Bfloat16Products& operator=(const Bfloat16Products&) = delete;

 private:
  bool enabled_;
  at::ScalarType previous_type_;
};

// The sum of the loss over the examples: of one label the cross entropy, of several labels the mean of their binary
// cross entropies, both in nats; of a regression the squared error of the scaled number.
at::Tensor SumOfLosses(const TrainableClassifier::Scores& scores, ProblemType problem, double label_smoothing) {
  switch (problem) {
    case ProblemType::kMultiLabel:
      return at::binary_cross_entropy_with_logits(scores.logits, scores.targets, /*weight=*/{}, /*pos_weight=*/{},
                                                  at::Reduction::Sum) /
             scores.logits.size(1);
    case ProblemType::kRegression:
      return at::mse_loss(scores.logits, scores.targets, at::Reduction::Sum);
    case ProblemType::kSingleLabel:
      break;
  }
  return at::cross_entropy_loss(scores.logits, scores.targets, /*weight=*/{}, at::Reduction::Sum, /*ignore_index=*/-100,
                                label_smoothing);
}

class ClassifierTask final : public TrainingTask {
 public:
  ClassifierTask(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier)
      : options_(options),
        classifier_(classifier),
        validation_(classifier.data().description),
        order_(classifier.training_examples(), options.seed),
        parameters_(classifier.InitialParameters(options.seed, options.official_weights)),
        shards_(parameters_, options.shards) {
    validation_.held_out = validation_.validation;
    if (options.average_decay == 0) return;
    for (const NamedParameter& parameter : parameters_) {
      averages_.push_back({parameter.name, parameter.value.detach().clone()});
    }
  }

  const std::vector<NamedParameter>& parameters() const override { return parameters_; }
  const std::vector<NamedParameter>& result() const override { return averages_.empty() ? parameters_ : averages_; }

  double LossStep(int64_t step) override {
    std::vector<Draw> draws = order_.Batch(step, options_.batch);
    classifier_.Arrange(draws);
    groups_.clear();
    for (int64_t first = 0; first < options_.batch; first += options_.group) {
      Group& group = groups_.emplace_back();
      group.draws.assign(draws.begin() + first, draws.begin() + std::min(first + options_.group, options_.batch));
    }
    shards_.RunStep([&](int64_t shard) {
      for (size_t group = shard; group < groups_.size(); group += shards_.size()) RunGroup(shard, groups_[group]);
    });
    double loss = 0;
    for (const Group& group : groups_) loss += group.loss;
    return loss / static_cast<double>(options_.batch);
  }

  void WeightsChanged(int64_t step) override {
    const c10::NoGradGuard no_grad;
    classifier_.MoveStatistics(parameters_, MeanStatistics());
    // A smaller decay at first, so that the average does not keep the random initial weights.
    const double decay = std::min(options_.average_decay, (1.0 + static_cast<double>(step)) / (10.0 + step));
    for (size_t i = 0; i < averages_.size(); ++i) {
      averages_[i].value.mul_(decay).add_(parameters_[i].value, 1 - decay);
    }
  }

  std::vector<NamedParameter> State() const override {
    std::vector<NamedParameter> state;
    state.reserve(averages_.size());
    for (const NamedParameter& average : averages_) state.push_back({"average." + average.name, average.value});
    return state;
  }

  std::optional<HeldOutResult> HeldOut(absl::FunctionRef<bool()> stops) const override {
    return Evaluate(EvaluatedPart::kHeldOut, classifier_.data().description, stops);
  }
  bool has_validation() const override { return !validation_.validation.empty(); }
  std::optional<HeldOutResult> Validation(absl::FunctionRef<bool()> stops) const override {
    return Evaluate(EvaluatedPart::kValidation, validation_, stops);
  }

 private:
  // `description` has the part's examples as held-out ones.
  std::optional<HeldOutResult> Evaluate(EvaluatedPart part, const DataDescription& description,
                                        absl::FunctionRef<bool()> stops) const {
    const int64_t examples = std::ssize(description.held_out);
    std::vector<TrainableClassifier::Scores> groups((examples + options_.group - 1) / options_.group);
    std::atomic<bool> stopped = false;
    shards_.Run([&](int64_t shard) {
      const c10::NoGradGuard no_grad;
      for (size_t group = shard; group < groups.size() && !stopped; group += shards_.size()) {
        if (shard == 0 && stops()) {
          stopped = true;
          return;
        }
        const int64_t first = static_cast<int64_t>(group) * options_.group;
        groups[group] = classifier_.Evaluate(result(), part, first, std::min(options_.group, examples - first));
      }
    });
    if (stopped) return std::nullopt;
    const std::unique_ptr<HeldOutFigures> figures = MakeHeldOutFigures(description);
    double loss = 0;
    for (const TrainableClassifier::Scores& scores : groups) {
      loss += SumOfLosses(scores, description.problem, 0).item<double>();
      figures->Add(scores.logits, scores.targets);
    }
    loss /= static_cast<double>(examples);
    return HeldOutResult{
        .figures = figures->Figures(loss), .details = figures->WorstLabels(), .score = figures->Score(), .loss = loss};
  }

  // The draws that the model runs at once, and the results.
  struct Group {
    std::vector<Draw> draws;
    double loss = 0;  // summed over the draws
    std::vector<at::Tensor> statistics;
  };

  void RunGroup(int64_t shard, Group& group) const {
    TrainableClassifier::Scores scores;
    {
      const Bfloat16Products products(options_.bfloat16_products);
      scores = classifier_.Train(shards_.of(shard), group.draws, options_.seed);
    }
    scores.logits = scores.logits.to(at::kFloat);
    const at::Tensor loss = SumOfLosses(scores, classifier_.data().description.problem, options_.label_smoothing);
    loss.div(static_cast<double>(options_.batch)).backward();
    group.loss = loss.item<double>();
    group.statistics = std::move(scores.statistics);
  }

  // The groups' mean statistics of batch normalisation.
  std::vector<at::Tensor> MeanStatistics() const {
    std::vector<at::Tensor> means = groups_.front().statistics;
    for (size_t i = 0; i < means.size(); ++i) {
      for (size_t group = 1; group < groups_.size(); ++group) means[i] = means[i] + groups_[group].statistics[i];
      means[i] = means[i] / static_cast<double>(groups_.size());
    }
    return means;
  }

  const ClassifierTrainerOptions& options_;
  const TrainableClassifier& classifier_;
  DataDescription validation_;  // its held-out examples are those of the validation part
  ExampleOrder order_;
  std::vector<NamedParameter> parameters_, averages_;
  mutable ParameterShards shards_;  // evaluations use its threads, too
  std::vector<Group> groups_;       // of the step
};

RunSettings SettingsOfRun(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier) {
  RunSettings settings = classifier.data().settings;
  settings.merge(SettingsOf(options));
  settings["--group"] = absl::StrCat(options.group);
  settings["--label-smoothing"] = absl::StrCat(options.label_smoothing);
  settings["--average-decay"] = absl::StrCat(options.average_decay);
  return settings;
}

absl::Status CheckOptions(const ClassifierTrainerOptions& options, ProblemType problem) {
  if (options.group > options.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("--group is ", options.group, ", not in 1 .. --batch ", options.batch));
  }
  if (options.label_smoothing > 0 && problem != ProblemType::kSingleLabel) {
    return absl::InvalidArgumentError(
        absl::StrCat("--label-smoothing is ", options.label_smoothing, "; it must be 0 except for a single label"));
  }
  const int64_t groups = (options.batch + options.group - 1) / options.group;
  if (options.shards > groups) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shards is ", options.shards, ", not in 1 .. ", groups, ", the groups of a batch"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TrainClassifier(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier) {
  const ClassifierData& data = classifier.data();
  LS_RETURN_IF_ERROR(CheckOptions(options, data.description.problem));
  LS_RETURN_IF_ERROR(CheckOutput(options));
  ProgressUnits units{.name = "examples", .per_step = options.batch};
  if (data.description.problem == ProblemType::kRegression) units.loss = "of the variance";
  const auto write = [&](const std::vector<NamedParameter>& result,
                         const std::map<std::string, std::string>& metadata) {
    const TrainableClassifier::WrittenWeights written = classifier.Written(result);
    return WriteModelDirectory(options.output_directory, written.weights, written.exact, data.files, metadata);
  };
  const ModelRun run{.settings = SettingsOfRun(options, classifier),
                     .units = units,
                     .data_report = DataReport(data.description),
                     .call = data.call,
                     .input = data.input,
                     .make_task = [&] { return std::make_unique<ClassifierTask>(options, classifier); },
                     .write = write};
  return TrainModel(options, run);
}

}  // namespace longshort::models
