#include "models/train/held_out_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace longshort::models {
namespace {

constexpr size_t kMostLabels = 20;  // in the report of the data
constexpr size_t kWorst = 10;       // labels that WorstLabels shows

double Ratio(int64_t part, int64_t all) { return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all); }

// The number of examples with each label.
std::vector<int64_t> Counts(const DataDescription& description, const std::vector<Target>& targets) {
  std::vector<int64_t> counts(description.labels.size());
  for (const Target& target : targets) {
    for (const int64_t one : target.classes) ++counts[one];
  }
  return counts;
}

// The labels' indices, those of the largest count first.
std::vector<int64_t> ByFallingCount(const std::vector<int64_t>& counts) {
  std::vector<int64_t> order(counts.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return counts[a] > counts[b]; });
  return order;
}

// The first `most` rows, and how many more there are.
std::string BeginningOf(const std::vector<TextRow>& rows, const TextRow& head, size_t most) {
  std::vector<TextRow> shown = {head};
  shown.insert(shown.end(), rows.begin(), rows.begin() + static_cast<int64_t>(std::min(most, rows.size())));
  return absl::StrCat(TextTable(shown, 2),
                      rows.size() > most ? absl::StrCat("  and ", rows.size() - most, " more\n") : "");
}

// Rows of labels with errors, and the order by which they are sorted.
using WorstRows = std::vector<std::pair<std::pair<double, int64_t>, TextRow>>;

std::string WorstTable(const std::string& title, const TextRow& head, WorstRows rows) {
  if (rows.empty()) return "";
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TextRow> sorted;
  for (auto& [order, row] : rows) sorted.push_back(std::move(row));
  return absl::StrCat(title, " with errors, worst first:\n", BeginningOf(sorted, head, kWorst));
}

class SingleLabelFigures final : public HeldOutFigures {
 public:
  explicit SingleLabelFigures(const DataDescription& description) : description_(description) {
    largest_ = ByFallingCount(Counts(description, description.train)).front();
    baseline_ = Ratio(Counts(description, description.held_out)[largest_], std::ssize(description.held_out));
  }

  void Add(const at::Tensor& logits, const at::Tensor& targets) override {
    const at::Tensor answers = logits.argmax(1),
                     labels = targets.argmax(1);  // [examples]
    for (int64_t i = 0; i < answers.size(0); ++i) {
      const int64_t label = labels.const_data_ptr<int64_t>()[i], answer = answers.const_data_ptr<int64_t>()[i];
      ++answers_[label][answer];
      right_ += answer == label ? 1 : 0;
    }
    examples_ += answers.size(0);
  }

  std::string Figures(double loss) const override {
    return absl::StrFormat("accuracy %.4f (%d of %d), always %s %.4f, loss %.4f nats", Ratio(right_, examples_), right_,
                           examples_, LargestLabel(), baseline_, loss);
  }
  double Score() const override { return Ratio(right_, examples_); }

  std::string WorstLabels() const override {
    // By the fraction that is right, then by the number of errors.
    WorstRows worst;
    for (const auto& [label, answers] : answers_) {
      int64_t all = 0, right = 0;
      std::pair<int64_t, int64_t> wrong = {0, 0};  // how often, and the answer
      for (const auto& [answer, count] : answers) {
        all += count;
        if (answer == label) {
          right = count;
        } else if (count > wrong.first) {
          wrong = {count, answer};
        }
      }
      if (right == all) continue;
      worst.push_back({{Ratio(right, all), right - all},
                       {ShownLabel(description_.labels[label]), absl::StrCat(right, " of ", all),
                        absl::StrCat(ShownLabel(description_.labels[wrong.second]), " (", wrong.first, ")")}});
    }
    return WorstTable("classes", {"class", "right", "most often answered instead"}, std::move(worst));
  }

  std::string Baseline() const override {
    return absl::StrFormat("always %s, the largest class, has accuracy %.4f", LargestLabel(), baseline_);
  }

 private:
  std::string LargestLabel() const { return QuotedLabel(description_.labels[largest_]); }

  const DataDescription& description_;
  int64_t largest_ = 0;
  double baseline_ = 0;
  std::map<int64_t, std::map<int64_t, int64_t>> answers_;  // how often, by class and answer
  int64_t right_ = 0, examples_ = 0;
};

// Counts of right and wrong answers, of one label or of all.
struct LabelAnswers {
  int64_t right = 0, answered = 0, labelled = 0;

  double F1() const { return Ratio(2 * right, answered + labelled); }
};

class MultiLabelFigures final : public HeldOutFigures {
 public:
  explicit MultiLabelFigures(const DataDescription& description)
      : description_(description), answers_(description.labels.size()) {
    std::map<std::vector<int64_t>, int64_t> sets;
    for (const Target& target : description.train) ++sets[target.classes];
    most_frequent_ = std::max_element(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->first;
    best_ = BestSet();
    LabelAnswers best;
    int64_t equal = 0;
    const std::vector<int64_t> counts = Counts(description, description.held_out);
    best.labelled = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    best.answered = std::ssize(best_) * std::ssize(description.held_out);
    for (const int64_t label : best_) best.right += counts[label];
    for (const Target& target : description.held_out) equal += target.classes == most_frequent_ ? 1 : 0;
    best_f1_ = best.F1();
    equal_ = Ratio(equal, std::ssize(description.held_out));
  }

  void Add(const at::Tensor& logits, const at::Tensor& targets) override {
    const at::Tensor answers = logits > 0, wanted = targets > 0.5;
    const auto sum = [](const at::Tensor& marks) { return marks.sum(0).to(at::kLong).contiguous(); };
    const at::Tensor right = sum(answers & wanted), answered = sum(answers), labelled = sum(wanted);
    for (size_t i = 0; i < answers_.size(); ++i) {
      answers_[i].right += right.const_data_ptr<int64_t>()[i];
      answers_[i].answered += answered.const_data_ptr<int64_t>()[i];
      answers_[i].labelled += labelled.const_data_ptr<int64_t>()[i];
    }
    examples_ += answers.size(0);
    exact_ += (answers == wanted).all(1).sum().item<int64_t>();
  }

  std::string Figures(double loss) const override {
    return absl::StrFormat("micro-F1 %.4f, always %s %.4f; exact match %.4f (%d of %d), always %s %.4f; loss %.4f nats",
                           Score(), Named(best_), best_f1_, Ratio(exact_, examples_), exact_, examples_,
                           Named(most_frequent_), equal_, loss);
  }
  double Score() const override {
    LabelAnswers all;
    for (const LabelAnswers& one : answers_) {
      all.right += one.right;
      all.answered += one.answered;
      all.labelled += one.labelled;
    }
    return all.F1();
  }

  std::string WorstLabels() const override {
    WorstRows worst;
    for (size_t i = 0; i < answers_.size(); ++i) {
      const LabelAnswers& one = answers_[i];
      if (one.answered + one.labelled == 2 * one.right) continue;
      worst.push_back({{one.F1(), 0},
                       {ShownLabel(description_.labels[i]), absl::StrFormat("%.4f", one.F1()), absl::StrCat(one.right),
                        absl::StrCat(one.answered - one.right), absl::StrCat(one.labelled - one.right)}});
    }
    return WorstTable("labels", {"label", "F1", "found", "found wrongly", "missed"}, std::move(worst));
  }

  std::string Baseline() const override {
    return absl::StrFormat("always %s has micro-F1 %.4f; always %s has exact match %.4f", Named(best_), best_f1_,
                           Named(most_frequent_), equal_);
  }

 private:
  // The labels that all examples get for the best micro-F1 on the training data: some of the most frequent ones.
  std::vector<int64_t> BestSet() const {
    const std::vector<int64_t> counts = Counts(description_, description_.train);
    std::vector<int64_t> order = ByFallingCount(counts);
    LabelAnswers all{.labelled = std::accumulate(counts.begin(), counts.end(), int64_t{0})};
    double best = 0;
    size_t size = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      all.right += counts[order[i]];
      all.answered += std::ssize(description_.train);
      if (all.F1() > best) best = all.F1(), size = i + 1;
    }
    order.resize(size);
    return order;
  }

  std::string Named(const std::vector<int64_t>& labels) const {
    constexpr size_t kMostNamed = 3;
    if (labels.empty()) return "no label";
    if (labels.size() > kMostNamed) return absl::StrCat("the ", labels.size(), " most frequent labels");
    return absl::StrJoin(labels, " + ", [this](std::string* out, int64_t label) {
      out->append(QuotedLabel(description_.labels[label]));
    });
  }

  const DataDescription& description_;
  std::vector<int64_t> most_frequent_, best_;
  double best_f1_ = 0, equal_ = 0;
  std::vector<LabelAnswers> answers_;
  int64_t examples_ = 0, exact_ = 0;
};

class RegressionFigures final : public HeldOutFigures {
 public:
  explicit RegressionFigures(const DataDescription& description)
      : scale_(ScaleOf(description.train)), held_out_(ScaleOf(description.held_out)) {}

  void Add(const at::Tensor& logits, const at::Tensor& targets) override {
    squares_ += (logits - targets).to(at::kDouble).square().sum().item<double>() * Square(scale_.deviation);
    examples_ += logits.size(0);
  }

  std::string Figures(double /*loss*/) const override {
    const double variance = Square(held_out_.deviation);
    return absl::StrFormat("mean squared error %.6g, always the mean %.6g; R2 %s", -Score(), OfMean(),
                           variance == 0 ? "undefined" : absl::StrFormat("%.4f", 1 + Score() / variance));
  }
  double Score() const override { return -squares_ / static_cast<double>(examples_); }

  std::string Baseline() const override {
    return absl::StrFormat("always %.6g, the mean, has mean squared error %.6g", scale_.mean, OfMean());
  }

 private:
  static double Square(double x) { return x * x; }
  // The mean squared error of the training data's mean.
  double OfMean() const { return Square(held_out_.deviation) + Square(held_out_.mean - scale_.mean); }

  const NumberScale scale_, held_out_;
  double squares_ = 0;
  int64_t examples_ = 0;
};

// The numbers of examples by label, the largest of the training data first.
std::string LabelTable(const DataDescription& description) {
  const std::vector<int64_t> train = Counts(description, description.train),
                             held_out = Counts(description, description.held_out);
  std::vector<TextRow> rows;
  for (const int64_t i : ByFallingCount(train)) {
    rows.push_back({ShownLabel(description.labels[i]), absl::StrCat(train[i]), absl::StrCat(held_out[i])});
  }
  std::string table = BeginningOf(rows, {"label", "train", "held out"}, kMostLabels);
  if (description.problem == ProblemType::kMultiLabel) {
    const auto without = [](const std::vector<Target>& targets) {
      return std::count_if(targets.begin(), targets.end(), [](const Target& one) { return one.classes.empty(); });
    };
    absl::StrAppend(&table, "no label: ", without(description.train), " of the training examples, ",
                    without(description.held_out), " of those held out\n");
  }
  return table;
}

std::string NumberRange(const std::vector<Target>& targets) {
  const auto [low, high] = std::minmax_element(targets.begin(), targets.end(),
                                               [](const Target& a, const Target& b) { return a.number < b.number; });
  const NumberScale scale = ScaleOf(targets);
  return absl::StrFormat("numbers to train on: from %.6g to %.6g, mean %.6g, standard deviation %.6g\n", low->number,
                         high->number, scale.mean, scale.deviation);
}

}  // namespace

std::unique_ptr<HeldOutFigures> MakeHeldOutFigures(const DataDescription& description) {
  switch (description.problem) {
    case ProblemType::kMultiLabel:
      return std::make_unique<MultiLabelFigures>(description);
    case ProblemType::kRegression:
      return std::make_unique<RegressionFigures>(description);
    case ProblemType::kSingleLabel:
      break;
  }
  return std::make_unique<SingleLabelFigures>(description);
}

std::string DataReport(const DataDescription& description) {
  const bool is_regression = description.problem == ProblemType::kRegression;
  std::string report = absl::StrCat(
      "data: ", description.train.size(), " examples to train on, ", description.held_out.size(), " held out",
      description.validation.empty() ? ""
                                     : absl::StrCat(", ", description.validation.size(), " to choose the best weights"),
      is_regression
          ? ""
          : absl::StrCat(", ", description.labels.size(), description.labels.size() == 1 ? " label" : " labels"),
      "\n", is_regression ? NumberRange(description.train) : LabelTable(description));
  absl::StrAppend(&report, "baseline: ", MakeHeldOutFigures(description)->Baseline(), "\n");
  for (const std::string& note : description.notes) absl::StrAppend(&report, note, "\n");
  return report;
}

at::Tensor TargetRows(absl::Span<const Target> targets, ProblemType problem, int64_t classes) {
  at::Tensor rows = at::zeros({static_cast<int64_t>(targets.size()), classes});
  float* row = rows.mutable_data_ptr<float>();
  for (const Target& target : targets) {
    if (problem == ProblemType::kRegression) row[0] = target.number;
    for (const int64_t one : target.classes) row[one] = 1;
    row += classes;
  }
  return rows;
}

}  // namespace longshort::models
