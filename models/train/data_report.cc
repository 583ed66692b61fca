#include "models/train/data_report.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/train/held_out_figures.h"
#include "models/train/text_table.h"

namespace longshort::models {
namespace {

constexpr int64_t kMostLabels = 20;

// The numbers of examples by label, the largest of the training data first.
std::string LabelTable(const DataDescription& description) {
  const size_t labels = description.labels.size();
  std::vector<int64_t> train(labels + 1), held_out(labels + 1);  // the last ones: without a label
  const auto count = [labels](const std::vector<Target>& targets, std::vector<int64_t>& counts) {
    for (const Target& target : targets) {
      for (const int64_t one : target.classes) ++counts[one];
      counts[labels] += target.classes.empty() ? 1 : 0;
    }
  };
  count(description.train, train);
  count(description.held_out, held_out);
  std::vector<size_t> order(labels);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return train[a] > train[b]; });
  std::vector<std::vector<std::string>> rows;
  rows.reserve(labels);
  for (const size_t i : order) {
    rows.push_back({ShownLabel(description.labels[i]), absl::StrCat(train[i]), absl::StrCat(held_out[i])});
  }
  std::string table = TextTable({"label", "train", "held out"}, rows, kMostLabels);
  if (description.problem == ProblemType::kMultiLabel) {
    absl::StrAppend(&table, "no label: ", train[labels], " of the training examples, ", held_out[labels],
                    " of those held out\n");
  }
  return table;
}

std::string NumberRange(const DataDescription& description) {
  float low = description.train.front().number, high = low;
  for (const Target& target : description.train) {
    low = std::min(low, target.number);
    high = std::max(high, target.number);
  }
  const NumberScale scale = ScaleOf(description.train);
  return absl::StrFormat("numbers to train on: from %.6g to %.6g, mean %.6g, standard deviation %.6g\n", low, high,
                         scale.mean, scale.deviation);
}

}  // namespace

std::string DataReport(const DataDescription& description) {
  const bool is_regression = description.problem == ProblemType::kRegression;
  std::string report =
      absl::StrCat("data: ", description.train.size(), " examples to train on, ", description.held_out.size(),
                   " held out", is_regression ? "" : absl::StrCat(", ", description.labels.size(), " labels"), "\n",
                   is_regression ? NumberRange(description) : LabelTable(description));
  absl::StrAppend(&report, "baseline: ", MakeHeldOutFigures(description)->Baseline(), "\n");
  for (const std::string& note : description.notes) absl::StrAppend(&report, note, "\n");
  return report;
}

}  // namespace longshort::models
