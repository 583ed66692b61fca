#include "models/train/held_out_figures.h"

#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::held_out_figures_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Target> ClassTargets(const std::vector<std::vector<int64_t>>& classes) {
  std::vector<Target> targets;
  for (const std::vector<int64_t>& one : classes) targets.push_back({.classes = one, .number = 0});
  return targets;
}
std::vector<Target> NumberTargets(const std::vector<float>& numbers) {
  std::vector<Target> targets;
  for (const float number : numbers) targets.push_back({.classes = {}, .number = number});
  return targets;
}

// What the figures say of these answers for the held-out examples.
std::unique_ptr<HeldOutFigures> FiguresOf(const DataDescription& description, const at::Tensor& logits) {
  std::unique_ptr<HeldOutFigures> figures = MakeHeldOutFigures(description);
  figures->Add(logits, TargetRows(description.held_out, description.problem, logits.size(1)));
  return figures;
}

const DataDescription& SingleLabel() {
  static const DataDescription description{.problem = ProblemType::kSingleLabel,
                                           .labels = {"neg", "odd", "pos"},
                                           .train = ClassTargets({{2}, {2}, {2}, {0}, {1}}),
                                           .held_out = ClassTargets({{2}, {2}, {0}, {0}, {1}}),
                                           .notes = {"3 of 10 texts are cut."}};
  return description;
}

TEST(SingleLabelFigures, HaveTheLargestClassBesideThemAndNameTheWorst) {
  // The answers are pos, neg, neg, neg, neg for pos, pos, neg, neg, odd.
  const at::Tensor logits = at::tensor({0., 0., 1., 1., 0., 0., 1., 0., 0., 1., 0., 0., 1., 0., 0.}).view({5, 3});
  const auto figures = FiguresOf(SingleLabel(), logits);
  EXPECT_EQ(figures->Figures(0.25), "accuracy 0.6000 (3 of 5), always 'pos' 0.4000, loss 0.2500 nats");
  EXPECT_EQ(figures->WorstLabels(),
            "classes with errors, worst first:\n"
            "  class  right   most often answered instead\n"
            "  odd    0 of 1  neg (1)\n"
            "  pos    1 of 2  neg (1)\n");
  const at::Tensor perfect = TargetRows(SingleLabel().held_out, ProblemType::kSingleLabel, 3);
  EXPECT_EQ(FiguresOf(SingleLabel(), perfect)->WorstLabels(), "");
}

TEST(MultiLabelFigures, HaveTheBestConstantAnswersBesideThem) {
  const DataDescription description{.problem = ProblemType::kMultiLabel,
                                    .labels = {"a", "b", "c"},
                                    .train = ClassTargets({{0}, {0}, {0, 1}, {0, 1, 2}}),
                                    .held_out = ClassTargets({{0, 1}, {0}, {}, {2}}),
                                    .notes = {}};
  // The answers are {a, b}, {a, b}, {}, {}.
  const at::Tensor logits = at::tensor({1., 1., -1., 1., 1., -1., -1., -1., -1., -1., -1., -1.}).view({4, 3});
  const auto figures = FiguresOf(description, logits);
  // Of 4 answers 3 are right, and of 4 labels 3 are found: F1 0.75. The best constant answer for training is {a, b}:
  // 2 * 6 / (8 + 7) exceeds {a}'s 2 * 4 / (4 + 7). For the held-out examples it has 2 * 3 / (8 + 4) = 0.5.
  EXPECT_EQ(
      figures->Figures(0.5),
      "micro-F1 0.7500, always 'a' + 'b' 0.5000; exact match 0.5000 (2 of 4), always 'a' 0.2500; loss 0.5000 nats");
  EXPECT_EQ(figures->WorstLabels(),
            "labels with errors, worst first:\n"
            "  label  F1      found  found wrongly  missed\n"
            "  c      0.0000  0      0              1\n"
            "  b      0.6667  1      1              0\n");
  EXPECT_THAT(DataReport(description), HasSubstr("no label: 0 of the training examples, 1 of those held out\n"));
}

TEST(RegressionFigures, AreInTheUnitOfTheDataAndHaveTheMeanBesideThem) {
  const DataDescription description{.problem = ProblemType::kRegression,
                                    .labels = {},
                                    .train = NumberTargets({10, 30}),  // mean 20, deviation 10
                                    .held_out = NumberTargets({20, 40}),
                                    .notes = {}};
  const auto figures = MakeHeldOutFigures(description);
  // The scaled targets are 0 and 2, the answers 0.5 and 2: one error of 5, so the mean of the squares is 12.5.
  figures->Add(at::tensor({0.5, 2.}).view({2, 1}), at::tensor({0., 2.}).view({2, 1}));
  // The mean of training, 20, has the errors 0 and 20; the variance of 20 and 40 is 100.
  EXPECT_EQ(figures->Figures(0), "mean squared error 12.5, always the mean 200; R2 0.8750");
  EXPECT_EQ(DataReport(description),
            "data: 2 examples to train on, 2 held out\n"
            "numbers to train on: from 10 to 30, mean 20, standard deviation 10\n"
            "baseline: always 20, the mean, has mean squared error 200\n");
}

TEST(DataReport, HasTheExamplesOfEachClassTheBaselineAndTheNotes) {
  EXPECT_EQ(DataReport(SingleLabel()),
            "data: 5 examples to train on, 5 held out, 3 labels\n"
            "  label  train  held out\n"
            "  pos    3      2\n"
            "  neg    1      2\n"
            "  odd    1      1\n"
            "baseline: always 'pos', the largest class, has accuracy 0.4000\n"
            "3 of 10 texts are cut.\n");
}

TEST(DataReport, ShowsTheLargestClassesOfMany) {
  DataDescription description;
  for (int i = 0; i < 60; ++i) {
    description.labels.push_back("label " + std::to_string(i));
    description.train.insert(description.train.end(), i + 1, {.classes = {i}, .number = 0});
    description.held_out.push_back({.classes = {i}, .number = 0});
  }
  description.labels[59] = "caf\xc3\xa9\x1b[2J";
  const std::string report = DataReport(description);
  EXPECT_THAT(report, HasSubstr("  caf\xc3\xa9\\x1b[2J  60     1\n")) << "terminals get no control characters";
  EXPECT_THAT(report, HasSubstr("  label 40     41     1\n  and 40 more\n"));
  EXPECT_THAT(report, Not(HasSubstr("label 39")));
}

}  // namespace longshort::models::held_out_figures_test
