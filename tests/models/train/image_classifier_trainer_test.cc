// CvT*-LS trained on small images, written, loaded and served.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/classifiers/classifiers.h"
#include "models/images/image_preprocessor.h"
#include "models/train/commands.h"
#include "models/weights/cvt_config.h"
#include "tests/models/images/png_writer.h"
#include "tests/models/train/classifier_training.h"

namespace longshort::models::image_classifier_trainer_test {

using ::testing::HasSubstr;

constexpr const char kConfig[] = R"({"architecture": "cvt", "stage_widths": [8, 16], "stage_heads": [1, 2],
  "stage_depths": [1, 1], "projection_ranks": [4, 2], "window_sizes": [2, 2], "feed_forward_ratio": 2, "channels": 3,
  "classes": 2, "embedding_kernels": [5, 3], "embedding_strides": [3, 2], "embedding_paddings": [2, 1],
  "projection_kernel": 3, "dynamic_projection_kernel": 3, "shared_dual_norm": true, "layer_norm_epsilon": 1e-5,
  "batch_norm_epsilon": 1e-5, "weight_standardization_epsilon": 1e-5,
  "preprocessing": {"resize_shorter_side": 26, "crop_height": 24, "crop_width": 24, "mean": [0.5, 0.5, 0.5],
                    "standard_deviation": [0.25, 0.25, 0.25]}})";

// A PNG of 30 x 24 pixels: `red` in the rows above, other colours mixed in.
std::string Picture(bool red, int number) {
  constexpr int kWidth = 30, kHeight = 24;
  std::string rows;
  for (int y = 0; y < kHeight; ++y) {
    rows += '\0';  // no filter
    for (int x = 0; x < kWidth; ++x) {
      const char dull = static_cast<char>((x * 7 + y * 5 + number * 11) % 100);
      rows += {red ? static_cast<char>(200) : dull, dull, red ? dull : static_cast<char>(200)};
    }
  }
  return PngOf(kWidth, kHeight, /*bits=*/8, PngColours::kRgb, rows);
}

class ImageClassifierTrainerTest : public ClassifierTrainingTest {
 protected:
  ImageClassifierTrainerTest() {
    files_.config = folder_.Write("config.json", kConfig);
    files_.train = folder_.Path("train");
    files_.held_out = folder_.Path("held_out");
    for (int i = 0; i < 12; ++i) {
      const std::string part = i < 8 ? "train/" : "held_out/", name = std::to_string(100 + i) + ".png";
      folder_.Write(part + "blue/" + name, Picture(/*red=*/false, i));
      folder_.Write(part + "red/" + name, Picture(/*red=*/true, i));
    }
  }

  std::unique_ptr<TrainableClassifier> Load(const AugmentationOptions& augmentation) const {
    return ValueOf(LoadTrainableImageClassifier(files_, augmentation));
  }

  TrainingFiles files_;
};

TEST_F(ImageClassifierTrainerTest, AStoppedRunGoesOnExactlyWhereItStopped) {
  ExpectAStoppedRunGoesOn(*Load({.side = 20, .cutmix = 0.5}));
}

TEST_F(ImageClassifierTrainerTest, TheServedModelGivesTheTrainingModulesLogits) {
  const auto classifier = Load({});
  ASSERT_TRUE(TrainClassifier(Options("model", 8), *classifier).ok());
  const auto directory = OpenModelDirectory(folder_.Path("model"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto served = LoadCvt(*directory, {});
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->info().labels, (std::vector<std::string>{"blue", "red"}));

  const auto preprocessor = MakeImagePreprocessor(ParseCvtConfig(kConfig, "config.json")->preprocessing, {});
  const ClassifierItem items[] = {preprocessor->Decode(folder_.Read("held_out/blue/108.png")).value(),
                                  preprocessor->Decode(folder_.Read("held_out/blue/109.png")).value()};
  const std::unique_ptr<Classifier> replica = served->NewReplica({}).value();  // has the logits
  const auto result = replica->Classify({&items[0], &items[1]});
  ASSERT_TRUE(result.ok()) << result.status();
  const at::Tensor trained = HeldOutLogits(*classifier, "model");
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(result->logits[i], At(trained, i), 1e-5) << i;
}

TEST_F(ImageClassifierTrainerTest, LearnsToClassifyColours) {
  const auto classifier = Load({.colour_jitter = 0.1});
  ClassifierTrainerOptions options = Options("learned", 40);
  options.loop.optimizer.peak_learning_rate = 5e-3;
  options.bfloat16_products = true;
  ASSERT_TRUE(TrainClassifier(options, *classifier).ok());
  const at::Tensor logits = HeldOutLogits(*classifier, "learned");
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(At(logits, 2 * i) > At(logits, 2 * i + 1), i < 4) << i;  // blue first
}

TEST_F(ImageClassifierTrainerTest, ShardsChangeNothingButRounding) {
  ExpectShardsChangeNothingButRounding(*Load({.cutmix = 0.5}));
}

TEST_F(ImageClassifierTrainerTest, BrokenDataIsNamed) {
  const auto error_with = [&](const TrainingFiles& files) {
    return std::string(LoadTrainableImageClassifier(files, {}).status().message());
  };
  TrainingFiles files = files_;
  files.held_out = folder_.Path("missing");
  EXPECT_THAT(error_with(files), HasSubstr("missing"));
  folder_.Write("other/green/1.png", Picture(true, 1));
  files.held_out = folder_.Path("other");
  EXPECT_THAT(error_with(files), HasSubstr("label 'green' is not in the training data"));
  folder_.Write("broken/red/1.png", Picture(true, 1).substr(0, 100));
  files.held_out = folder_.Path("broken");
  EXPECT_THAT(error_with(files), HasSubstr("broken/red/1.png"));
  folder_.Write("empty/red.txt", "");
  files.held_out = folder_.Path("empty");
  EXPECT_THAT(error_with(files), HasSubstr("empty: its folders contain no file"));
  files = files_;
  files.train = folder_.Path("other");
  EXPECT_THAT(error_with(files), HasSubstr("other: has 1 labels, the model has 2 classes"));
}

TEST(ImageClassifierCommand, RefusesNumbersThatCannotBe) {
  for (const char* const option : {"--image-side=-1", "--smallest-crop=0", "--smallest-crop=1.1", "--colour-jitter=1",
                                   "--cutmix=-0.1", "--cutmix=nan"}) {
    const absl::Status status = RunImageClassifierCommand({option});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_THAT(std::string(status.message()), HasSubstr("; it must be in [")) << option;
  }
}

}  // namespace longshort::models::image_classifier_trainer_test
