// Text classifiers of several labels, and regressions: trained, written, loaded and served.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/train/commands.h"
#include "nlohmann/json.hpp"
#include "tests/models/train/classifier_training.h"

namespace longshort::models::text_problems_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextProblemsTest : public ClassifierTrainingTest {
 protected:
  // Whether a text has an x decides label "x", and the same for "y". The number counts both, and is far from 0.
  static std::string TextOf(int i) {
    return std::string(i % 5 + 1, 'f') + (i % 2 == 0 ? "x" : "") + std::string(i % 7, 'g') + (i % 3 == 0 ? "y" : "");
  }
  static double NumberOf(int i) { return 1e6 + 1000 * ((i % 2 == 0 ? 2 : 0) + (i % 3 == 0 ? 1 : 0)); }
  std::string LabelLists() const {
    std::string lines;
    for (int i = 0; i < 96; ++i) {
      nlohmann::json labels = nlohmann::json::array();
      if (i % 2 == 0) labels.push_back("x");
      if (i % 3 == 0) labels.push_back("y");
      lines += nlohmann::json({{"text", TextOf(i)}, {"label", labels}}).dump() + "\n";
    }
    return folder_.Write("lists.jsonl", lines);
  }
  std::string Numbers() const {
    std::string table = "words;stars\n";
    for (int i = 0; i < 96; ++i) table += TextOf(i) + ";" + std::to_string(NumberOf(i)) + "\n";
    return folder_.Write("numbers.csv", table);
  }

  std::string Out(const std::string& name) const { return "--out=" + folder_.Path("repo/" + name + "/1"); }

  // The outputs of the served model for a text.
  std::vector<float> Served(const std::string& name, const std::string& text) const {
    const auto directory = OpenModelDirectory(folder_.Path("repo/" + name + "/1"));
    EXPECT_TRUE(directory.ok()) << directory.status();
    const auto served = LoadTextClassifier(*directory, {});
    EXPECT_TRUE(served.ok()) << served.status();
    const ClassifierItem item = TokenItem{{LoadDocumentTokenizer(*directory).value()->Encode(text).value()}};
    const std::unique_ptr<Classifier> replica = served->NewReplica({}).value();
    const auto result = replica->Classify({&item});
    EXPECT_TRUE(result.ok()) << result.status();
    return {result->rows.begin(), result->rows.end()};
  }

  static std::vector<std::string> Learning() {
    return {"--steps=150", "--batch=16", "--group=16", "--warmup-steps=10", "--learning-rate=3e-3"};
  }
  static absl::Status Run(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTextClassifierCommand(arguments);
  }
};

TEST_F(TextProblemsTest, SeveralLabelsAreLearntEachByItself) {
  const absl::Status status = Run({LabelLists(), "--problem=multi-label", Out("several")}, Learning());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(folder_.Read("repo/several/1/labels.txt"), "x\ny\n");
  EXPECT_THAT(folder_.Read("repo/several/1/config.json"), HasSubstr("multi_label_classification"));
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> logits = Served("several", TextOf(i));
    ASSERT_EQ(logits.size(), 2U);
    EXPECT_EQ(logits[0] > 0, i % 2 == 0) << TextOf(i);
    EXPECT_EQ(logits[1] > 0, i % 3 == 0) << TextOf(i);
  }
}

TEST_F(TextProblemsTest, ARegressionAnswersInTheUnitOfTheData) {
  const std::vector<std::string> columns = {"--problem=regression", "--text-column=words", "--label-column=stars"};
  std::vector<std::string> more = Learning();
  more.insert(more.end(), columns.begin(), columns.end());
  const absl::Status status = Run({Numbers(), Out("number")}, more);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(folder_.Read("repo/number/1/labels.txt"), "stars\n");
  EXPECT_THAT(folder_.Read("repo/number/1/config.json"), HasSubstr("\"problem_type\": \"regression\""));
  double squares = 0;
  std::vector<float> before;
  for (int i = 0; i < 6; ++i) {
    before.push_back(Served("number", TextOf(i)).front());
    squares += std::pow(before.back() - NumberOf(i), 2);
  }
  EXPECT_LT(squares / 6, 0.1 * 1.25e6) << "a tenth of the numbers' variance; their mean exceeds float16";

  // So low a rate changes nothing, so the new model answers what the first one did, from another scale.
  std::string table = "words,stars\n";
  for (int i = 0; i < 20; ++i) table += TextOf(i) + "," + std::to_string(i) + "\n";
  const std::string other = folder_.Write("other.csv", table);
  const absl::Status tuned = Run({other, Out("tuned"), "--from=" + folder_.Path("repo/number/1"), "--steps=1",
                                  "--batch=4", "--group=4", "--warmup-steps=0", "--learning-rate=1e-9"},
                                 columns);
  ASSERT_TRUE(tuned.ok()) << tuned;
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(Served("tuned", TextOf(i)).front(), before[i], 2) << i;
}

TEST_F(TextProblemsTest, ARunOfAnotherProblemBeginsWithTheLayersOfAModel) {
  const std::vector<std::string> brief = {"--steps=2", "--batch=4", "--group=4", "--warmup-steps=0"};
  ASSERT_TRUE(Run({LabelLists(), "--problem=multi-label", Out("several")}, brief).ok());
  const std::string from = "--from=" + folder_.Path("repo/several/1");
  const absl::Status status = Run(
      {Numbers(), "--problem=regression", "--text-column=words", "--label-column=stars", Out("number"), from}, brief);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Served("number", "x").size(), 1U);
  EXPECT_TRUE(Run({LabelLists(), Out("again"), from}, brief).ok()) << "by default the problem is that of --from";
}

TEST_F(TextProblemsTest, AStoppedRegressionGoesOnExactlyWhereItStopped) {
  TrainingFiles files;
  files.train = Numbers();
  files.problem = ProblemType::kRegression;
  files.format.text_column = "words";
  files.format.label_column = "stars";
  const auto load = [&] { return ValueOf(LoadTrainableTextClassifier(files, {})); };
  ClassifierTrainerOptions options = Options("smooth", 2);
  EXPECT_THAT(TrainClassifier(options, *load()).message(), HasSubstr("--label-smoothing is 0.1; it must be 0"));
  ClassifierTrainerOptions whole = Options("whole", 8), interrupted = Options("interrupted", 8);
  whole.label_smoothing = interrupted.label_smoothing = 0;
  interrupted.loop.stop_after_steps = 5;
  ASSERT_TRUE(TrainClassifier(whole, *load()).ok());
  ASSERT_TRUE(TrainClassifier(interrupted, *load()).ok());
  interrupted.loop.stop_after_steps = 0;
  ASSERT_TRUE(TrainClassifier(interrupted, *load()).ok());
  EXPECT_EQ(folder_.Read("whole/model.safetensors"), folder_.Read("interrupted/model.safetensors"));
}

TEST_F(TextProblemsTest, WhatCannotBeLearntIsRefused) {
  const auto error = [&](const std::string& table, const std::string& problem) {
    return std::string(
        RunTextClassifierCommand({folder_.Write("t.csv", table), "--problem=" + problem, Out("none")}).message());
  };
  EXPECT_THAT(error("text,label\na,3\nb,3\n", "regression"), HasSubstr("all numbers to train on are 3"));
  EXPECT_THAT(error("text,label\na,3\nb,good\n", "regression"), HasSubstr("t.csv:3: label is 'good'; a regression"));
  EXPECT_THAT(error("text,label\na,x\nb,x\n", "multi-label"), HasSubstr("all examples have the same labels ('x')"));
  EXPECT_THAT(error("text,label\na,x\nb,x\n", "ranking"), HasSubstr("single-label"));
  EXPECT_THAT(Run({Numbers(), "--problem=regression", Out("none")}, {"--min-examples=2"}).message(),
              HasSubstr("--min-examples is for labels"));
}

TEST_F(TextProblemsTest, TextsThatAreCutAreCounted) {
  TrainingFiles files;
  files.train = folder_.Write("long.csv", "text,label\n" + std::string(9000, 'a') + ",x\nb,x\nc,y\n" +
                                              std::string(8193, 'd') + ",y\n" + std::string(8192, 'e') + ",y\n");
  const auto classifier = ValueOf(LoadTrainableTextClassifier(files, {}));
  EXPECT_THAT(classifier->data().description.notes,
              ElementsAre("2 of 5 texts are cut after 8192 bytes, which is all that the model reads; the longest has "
                          "9000."));
  files.held_out = folder_.Write("quoted.csv", "text,label\n\"\n\",x\nit's,x\n");
  EXPECT_EQ(ValueOf(LoadTrainableTextClassifier(files, {}))->data().input, "printf %s 'it'\\''s'");
}

}  // namespace longshort::models::text_problems_test
