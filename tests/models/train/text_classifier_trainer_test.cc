// Text classifiers trained, written, loaded and served.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/train/commands.h"
#include "re2/re2.h"
#include "tests/models/train/classifier_training.h"

namespace longshort::models::text_classifier_trainer_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char kConfig[] = R"({"architecture": "text_classifier", "tokenizer": "bytes_plus_one", "layers": 2,
  "model_width": 16, "heads": 2, "feed_forward_width": 32, "window_size": 4, "projection_rank": 2,
  "vocabulary_size": 257, "max_sequence_length": 64, "cls": "last_layer", "normalized_cls": false,
  "value_convolution": 0, "tied_layers": false, "documents": 1, "classes": 2})";

class TextClassifierTrainerTest : public ClassifierTrainingTest {
 protected:
  TextClassifierTrainerTest() {
    files_.config = folder_.Write("config.json", kConfig);
    files_.train = folder_.Write("train.jsonl", Texts(0, 40));
    files_.held_out = folder_.Write("held_out.jsonl", Texts(40, 52));
  }

  // Which letter comes first decides the label; lengths differ.
  static std::string Texts(int first, int last) {
    std::string lines;
    for (int i = first; i < last; ++i) {
      const std::string label = i % 2 == 0 ? "x" : "y", filling(i % 31, static_cast<char>('a' + i % 7));
      lines += "{\"label\": \"" + label + "\", \"text\": \"" + label + filling + "\"}\n";
    }
    return lines;
  }

  std::unique_ptr<TrainableClassifier> Load(const TextVariationOptions& variation) const {
    return ValueOf(LoadTrainableTextClassifier(files_, variation));
  }

  TrainingFiles files_;
};

TEST_F(TextClassifierTrainerTest, AStoppedRunGoesOnExactlyWhereItStopped) {
  ExpectAStoppedRunGoesOn(*Load({.crop_tokens = 16, .masked_tokens = 0.2, .dropout = {.rows = 0.1, .attention = 0.1}}));
}

TEST_F(TextClassifierTrainerTest, TheServedModelGivesTheTrainingModulesLogits) {
  const auto classifier = Load({});
  ASSERT_TRUE(TrainClassifier(Options("model", 12), *classifier).ok());
  const auto directory = OpenModelDirectory(folder_.Path("model"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto served = LoadTextClassifier(*directory, {});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->info().labels, (std::vector<std::string>{"x", "y"}));
  const auto tokenizer = LoadDocumentTokenizer(*directory);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  const at::Tensor trained = HeldOutLogits(*classifier, "model");
  const ClassifierItem items[] = {TokenItem{{(*tokenizer)->Encode("xfffffffff").value()}},
                                  TokenItem{{(*tokenizer)->Encode("ygggggggggg").value()}}};  // the texts 40 and 41
  const std::unique_ptr<Classifier> replica = served->NewReplica({}).value();                 // has the logits
  const auto result = replica->Classify({&items[0], &items[1]});
  ASSERT_TRUE(result.ok()) << result.status();
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(result->rows[i], At(trained, i), 1e-5) << i;
}

TEST_F(TextClassifierTrainerTest, LearnsWhatDecidesTheLabel) {
  const auto classifier = Load({});
  ClassifierTrainerOptions options = Options("learned", 120);
  options.loop.optimizer.peak_learning_rate = 5e-3;
  options.loop.checkpoint_interval = 120;  // each waits for the disk
  ASSERT_TRUE(TrainClassifier(options, *classifier).ok());
  const at::Tensor logits = HeldOutLogits(*classifier, "learned");
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(At(logits, 2 * i) > At(logits, 2 * i + 1), i % 2 == 0) << i;  // x first
}

// With a constant learning rate, a run of fewer steps ends with the weights that a longer one had at that step.
TEST_F(TextClassifierTrainerTest, TheBestWeightsOnTheHeldOutDataAreWritten) {
  const auto classifier = Load({});
  const auto train = [&](const std::string& name, int64_t steps, int64_t held_out_interval, int64_t stop = 0) {
    ClassifierTrainerOptions options = Options(name, steps);
    options.loop.optimizer.peak_learning_rate = 5e-3;
    options.loop.optimizer.final_fraction = 1;
    options.loop.held_out_interval = held_out_interval;
    options.loop.keep_best = held_out_interval > 0;
    options.loop.stop_after_steps = stop;
    options.loop.checkpoint_interval = 60;  // each waits for the disk
    options.average_decay = 0;
    testing::internal::CaptureStderr();
    const absl::Status status = TrainClassifier(options, *classifier);
    EXPECT_TRUE(status.ok()) << status;
    return testing::internal::GetCapturedStderr();
  };
  const std::string errors = train("best", 50, 10);
  int64_t best = 0;
  ASSERT_TRUE(RE2::PartialMatch(errors, R"(step (\d+) was better on the held-out data: its weights are)", &best))
      << errors;
  train("short", best, 0);
  EXPECT_EQ(folder_.Read("best/model.safetensors"), folder_.Read("short/model.safetensors"));
  train("stopped", 50, 10, /*stop=*/best);
  train("stopped", 50, 10);
  EXPECT_EQ(folder_.Read("stopped/model.safetensors"), folder_.Read("best/model.safetensors"))
      << "the checkpoint has the best weights";
  EXPECT_THAT(train("last", best, best), Not(HasSubstr("was better")));
}

TEST_F(TextClassifierTrainerTest, ShardsChangeNothingButRounding) {
  ExpectShardsChangeNothingButRounding(
      *Load({.crop_tokens = 16, .masked_tokens = 0.2, .dropout = {.rows = 0.1, .attention = 0.1}}));
}

TEST_F(TextClassifierTrainerTest, EvaluationsOfAnyNumberOfShardsHaveTheSameFigures) {
  const auto classifier = Load({});
  const auto figures = [&](const std::string& name, int64_t shards) {
    ClassifierTrainerOptions options = Options(name, 1);
    options.loop.optimizer.peak_learning_rate = 1e-9;  // the weights are the initial ones
    options.loop.held_out_interval = 1;
    options.shards = shards;
    testing::internal::CaptureStderr();
    EXPECT_TRUE(TrainClassifier(options, *classifier).ok());
    std::string figure;
    const std::string errors = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(RE2::PartialMatch(errors, R"(step 1: held-out (accuracy .*nats))", &figure)) << errors;
    return figure;
  };
  EXPECT_EQ(figures("three", 3), figures("one", 1));
}

TEST_F(TextClassifierTrainerTest, AValidationPartIsTakenFromTheTrainingData) {
  files_.division.validation_fraction = 0.25;
  const auto classifier = Load({});
  EXPECT_EQ(classifier->held_out_examples(), 12) << "the texts of --held-out";
  EXPECT_EQ(std::ssize(classifier->TargetsOf(EvaluatedPart::kValidation)), 10) << "5 of the 20 texts of each label";
  EXPECT_EQ(classifier->training_examples(), 30);
  ClassifierTrainerOptions options = Options("validated", 4);
  options.loop.keep_best = true;
  options.loop.held_out_interval = 2;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(TrainClassifier(options, *classifier).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("step 2: validation accuracy"));
}

TEST_F(TextClassifierTrainerTest, RefusesACheckpointOfAnotherRun) {
  const auto classifier = Load({}), other = Load({.crop_tokens = 8});
  ASSERT_TRUE(TrainClassifier(Options("run", 4), *classifier).ok());
  EXPECT_EQ(TrainClassifier(Options("run", 4), *other).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TextClassifierTrainerTest, BrokenDataIsNamed) {
  const auto error_with = [&](const TrainingFiles& files) {
    return std::string(LoadTrainableTextClassifier(files, {}).status().message());
  };
  TrainingFiles files = files_;
  files.train = folder_.Write("three.jsonl", Texts(0, 4) + "{\"label\": \"z\", \"text\": \"z\"}\n");
  EXPECT_THAT(error_with(files), HasSubstr("three.jsonl: has 3 labels, the model has 2 classes"));
  files.train = folder_.Write("returns.jsonl", R"({"label": "x", "text": "z"}
                                                 {"label": "z\r", "text": "z"})");
  files.held_out = files.train;
  EXPECT_THAT(error_with(files), HasSubstr("returns.jsonl: label 'z\\r' would be read from labels.txt as 'z'"));
  files = files_;
  files.held_out = folder_.Write("unknown.jsonl", "{\"label\": \"z\", \"text\": \"z\"}\n");
  EXPECT_THAT(error_with(files), HasSubstr("unknown.jsonl:1: label 'z' is not in the training data"));
  files.held_out = folder_.Write("empty.jsonl", "{\"label\": \"x\", \"text\": \"\"}\n");
  EXPECT_THAT(error_with(files), HasSubstr("empty.jsonl:1: the text is empty, or has only padding"));
  files.held_out = folder_.Path("missing.jsonl");
  EXPECT_THAT(error_with(files), HasSubstr("missing.jsonl"));
  files = files_;
  files.vocabulary = folder_.Write("vocabulary.txt", "a 1\n");
  EXPECT_THAT(error_with(files), HasSubstr("has no vocabulary"));
  files = files_;
  files.config = folder_.Write("broken.json", "{\"architecture\": \"text_classifier\"}");
  EXPECT_THAT(error_with(files), HasSubstr("broken.json"));
}

TEST_F(TextClassifierTrainerTest, RefusesOptionsThatDoNotFitTogether) {
  const auto classifier = Load({});
  ClassifierTrainerOptions options = Options("bad", 4);
  options.group = 9;  // of a batch of 8
  EXPECT_EQ(TrainClassifier(options, *classifier).code(), absl::StatusCode::kInvalidArgument);
  options = Options("bad", 4);
  options.shards = 4;  // of 3 groups
  EXPECT_EQ(TrainClassifier(options, *classifier).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TextClassifierCommand, RefusesNumbersThatCannotBe) {
  for (const char* const option :
       {"--batch=0", "--batch=9223372036854775807", "--group=0", "--shards=0", "--label-smoothing=1",
        "--average-decay=1", "--crop-tokens=-1", "--masked-tokens=1", "--masked-tokens=nan"}) {
    const absl::Status status = RunTextClassifierCommand({option});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_THAT(std::string(status.message()), HasSubstr("; it must be in [")) << option;
  }
}

}  // namespace longshort::models::text_classifier_trainer_test
