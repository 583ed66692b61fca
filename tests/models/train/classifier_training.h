// Common functions for the tests of both classifiers' training.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "models/train/trainable_classifier.h"
#include "models/weights/model_directory.h"
#include "tests/models/train/trained_weights.h"
#include "tests/models/train/training_folder.h"

namespace longshort::models {

class ClassifierTrainingTest : public ::testing::Test {
 protected:
  // A run that writes the model directory `name`.
  ClassifierTrainerOptions Options(const std::string& name, int64_t steps) const {
    ClassifierTrainerOptions options;
    options.loop.optimizer.total_steps = steps;
    options.loop.optimizer.warmup_steps = 2;
    options.loop.held_out_interval = 0;
    options.loop.checkpoint_interval = 3;
    options.loop.checkpoint_path = folder_.Path(name + ".checkpoint");
    options.batch = 8;
    options.group = 3;
    options.label_smoothing = 0.1;
    options.average_decay = 0.9;
    options.output_directory = folder_.Path(name);
    return options;
  }

  static std::unique_ptr<TrainableClassifier> ValueOf(absl::StatusOr<std::unique_ptr<TrainableClassifier>> classifier) {
    EXPECT_TRUE(classifier.ok()) << classifier.status();
    return classifier.ok() ? *std::move(classifier) : nullptr;
  }

  // The logits [examples, 2] of all held-out examples, by the weights that the run `name` wrote.
  at::Tensor HeldOutLogits(const TrainableClassifier& classifier, const std::string& name) const {
    const auto directory = OpenModelDirectory(folder_.Path(name));
    EXPECT_TRUE(directory.ok()) << directory.status();
    return classifier.HeldOut(TrainedWeights(directory->weights), 0, classifier.held_out_examples()).logits;
  }

  // A run that stops on its way and goes on writes what one writes that does not.
  void ExpectAStoppedRunGoesOn(const TrainableClassifier& classifier) const {
    ASSERT_TRUE(TrainClassifier(Options("whole", 8), classifier).ok());
    ClassifierTrainerOptions interrupted = Options("interrupted", 8);
    interrupted.loop.stop_after_steps = 5;
    ASSERT_TRUE(TrainClassifier(interrupted, classifier).ok());
    EXPECT_EQ(folder_.Read("interrupted/model.safetensors"), "");
    interrupted.loop.stop_after_steps = 0;
    ASSERT_TRUE(TrainClassifier(interrupted, classifier).ok());
    EXPECT_NE(folder_.Read("whole/model.safetensors"), "");
    EXPECT_EQ(folder_.Read("whole/model.safetensors"), folder_.Read("interrupted/model.safetensors"));
  }

  void ExpectShardsChangeNothingButRounding(const TrainableClassifier& classifier) const {
    const ClassifierTrainerOptions one = Options("one", 4);
    ClassifierTrainerOptions two = Options("two", 4);
    two.shards = 2;
    ASSERT_TRUE(TrainClassifier(one, classifier).ok());
    ASSERT_TRUE(TrainClassifier(two, classifier).ok());
    const at::Tensor expected = HeldOutLogits(classifier, "one"), sharded = HeldOutLogits(classifier, "two");
    ASSERT_EQ(sharded.numel(), 2 * classifier.held_out_examples());
    // The written weights are float16: a last bit of theirs moves a logit by about 1e-3.
    for (int64_t i = 0; i < sharded.numel(); ++i) EXPECT_NEAR(At(sharded, i), At(expected, i), 2e-3) << i;
  }

  TrainingFolder folder_;
};

}  // namespace longshort::models
