// CvT*-LS trained on small images, written, loaded and served.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/cvt/cvt_network.h"
#include "models/images/image_preprocessor.h"
#include "models/train/commands.h"
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
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(result->rows[i], At(trained, i), 1e-5) << i;
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
  folder_.Write("parts/train/names.txt", "red");
  folder_.Write("parts/train/red/1.png", Picture(true, 1));
  files.held_out = folder_.Path("parts");
  EXPECT_THAT(error_with(files), HasSubstr("parts/train/red is a folder in the folder of a class"));
  files = files_;
  files.train = folder_.Path("other");
  EXPECT_THAT(error_with(files), HasSubstr("other: all examples have the label 'green'"));
}

TEST_F(ImageClassifierTrainerTest, APresetHasTheClassesOfTheFoldersAndASize) {
  files_.config.clear();
  const auto config_of = [this](const std::string& size) {
    files_.size = size;
    const std::vector<ModelFile> files = Load({})->data().files;
    EXPECT_EQ(files[0].name, "config.json");
    EXPECT_EQ(files[1].content, "blue\nred\n");
    return ParseCvtConfig(files[0].content, "config.json").value();
  };
  const CvtConfig small = config_of("small"), medium = config_of("medium");
  EXPECT_EQ(small.classes, 2);
  EXPECT_EQ(small.preprocessing.crop_height, 128);
  ASSERT_EQ(small.stages.size(), medium.stages.size());
  for (size_t stage = 0; stage < small.stages.size(); ++stage) {
    EXPECT_EQ(medium.stages[stage].width, 2 * small.stages[stage].width) << stage;
    EXPECT_EQ(medium.stages[stage].width / medium.stages[stage].heads, 64) << stage;
  }
}

TEST_F(ImageClassifierTrainerTest, WithoutHeldOutImagesAPartOfEachClassIsHeldOut) {
  files_.held_out.clear();
  files_.division.held_out_fraction = 0.25;
  folder_.Write("train/red/of 100.png", folder_.Read("train/red/100.png"));  // an equal one
  const auto classifier = Load({});
  EXPECT_EQ(classifier->training_examples() + classifier->held_out_examples(), 17);
  EXPECT_THAT(classifier->data().call, HasSubstr("classify " + folder_.Path("train/")));
  const std::vector<NamedParameter> weights = classifier->InitialParameters(1);
  const at::Tensor targets = classifier->HeldOut(weights, 0, classifier->held_out_examples()).targets;
  EXPECT_EQ(targets.argmax(1).eq(0).sum().item<int64_t>(), 2) << "a quarter of the 8 blue ones";
  EXPECT_GE(targets.argmax(1).eq(1).sum().item<int64_t>(), 2) << "of the red ones, with any that equals them";
}

TEST_F(ImageClassifierTrainerTest, ARunBeginsWithTheWeightsOfAModel) {
  ASSERT_TRUE(TrainClassifier(Options("model", 3), *Load({})).ok());
  const auto model = OpenModelDirectory(folder_.Path("model"));
  ASSERT_TRUE(model.ok()) << model.status();
  // The largest difference of its weights from those of a run that begins with it.
  const auto difference = [&](const TrainableClassifier& classifier, bool in_head) {
    double largest = 0;
    for (const NamedParameter& weight : classifier.InitialParameters(7)) {
      if (weight.name.starts_with("head.") != in_head) continue;
      for (const NamedParameter& trained : TrainedWeights(model->weights)) {
        if (trained.name != weight.name) continue;
        if (!trained.value.sizes().equals(weight.value.sizes())) return 1e9;
        largest = std::max(largest, (trained.value - weight.value.detach()).abs().max().item<double>());
      }
    }
    return largest;
  };
  files_.config.clear();
  files_.from = folder_.Path("model");
  const auto same = Load({});
  EXPECT_EQ(difference(*same, /*in_head=*/false), 0);
  EXPECT_EQ(difference(*same, /*in_head=*/true), 0);
  EXPECT_EQ(same->data().settings.at("--from's fingerprint"), model->fingerprint);
  EXPECT_EQ(ParseCvtConfig(same->data().files[0].content, "config.json")->preprocessing.crop_height, 24) << "its form";

  files_.train = folder_.Path("other");
  files_.held_out.clear();
  for (int i = 0; i < 4; ++i) {
    for (const char* label : {"blue", "green", "red"}) {
      folder_.Write("other/" + std::string(label) + "/" + std::to_string(i) + ".png", Picture(*label == 'r', i));
    }
  }
  const auto other = Load({});
  EXPECT_EQ(other->data().files[1].content, "blue\ngreen\nred\n");
  EXPECT_EQ(difference(*other, /*in_head=*/false), 0);
  EXPECT_EQ(difference(*other, /*in_head=*/true), 1e9) << "the head has a row for each class";
  EXPECT_EQ(other->data().files[0].name, "config.json");
  EXPECT_EQ(ParseCvtConfig(other->data().files[0].content, "config.json")->classes, 3);
  std::filesystem::rename(folder_.Path("other/green"), folder_.Path("other/azure"));
  std::filesystem::remove_all(folder_.Path("other/red"));
  EXPECT_GT(difference(*Load({}), /*in_head=*/true), 0.01) << "as many classes, but others";
}

TEST_F(ImageClassifierTrainerTest, AFolderOfImagesBecomesAModel) {
  const std::string train = folder_.Path("train"), out = "--out=" + folder_.Path("repo/colours/1");
  const absl::Status status = RunImageClassifierCommand(
      {train, out, "--steps=2", "--batch=4", "--warmup-steps=0", "--image-side=64", "--held-out-fraction=0.2"});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(folder_.Read("repo/colours/1/labels.txt"), "blue\nred\n");
  const auto directory = OpenModelDirectory(folder_.Path("repo/colours/1"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_TRUE(LoadCvt(*directory, {}).ok());
  EXPECT_THAT(RunImageClassifierCommand({train, out, "--config=x", "--from=y"}).message(), HasSubstr("--from"));
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
