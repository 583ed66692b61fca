// Pixel-sequence classifiers trained on images, written, loaded and served.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/images/image_preprocessor.h"
#include "tests/models/images/png_writer.h"
#include "tests/models/train/classifier_training.h"

namespace longshort::models::pixel_classifier_trainer_test {

using ::testing::HasSubstr;

constexpr int kSide = 6;
constexpr const char kConfig[] = R"({"architecture": "text_classifier", "tokenizer": "pixels", "layers": 1,
  "model_width": 16, "heads": 2, "feed_forward_width": 32, "window_size": 4, "projection_rank": 2,
  "vocabulary_size": 256, "max_sequence_length": 36, "cls": "last_layer", "normalized_cls": false,
  "value_convolution": 0, "tied_layers": false, "documents": 1, "classes": 2,
  "preprocessing": {"height": 6, "width": 6}})";

// A grey PNG: its upper half is bright, or its lower half is.
std::string Picture(bool bright_above, int number) {
  std::string rows;
  for (int y = 0; y < kSide; ++y) {
    rows += '\0';  // no filter
    for (int x = 0; x < kSide; ++x) {
      const int noise = (x * 7 + y * 5 + number * 11) % 40;
      rows += static_cast<char>((y < kSide / 2) == bright_above ? 250 - noise : 10 + noise);
    }
  }
  return PngOf(kSide, kSide, /*bits=*/8, PngColours::kGrey, rows);
}

class PixelClassifierTrainerTest : public ClassifierTrainingTest {
 protected:
  PixelClassifierTrainerTest() {
    files_.config = folder_.Write("config.json", kConfig);
    files_.train = folder_.Path("train");
    files_.held_out = folder_.Path("held_out");
    for (int i = 0; i < 12; ++i) {
      const std::string part = i < 8 ? "train/" : "held_out/", name = std::to_string(100 + i) + ".png";
      folder_.Write(part + "above/" + name, Picture(true, i));
      folder_.Write(part + "below/" + name, Picture(false, i));
    }
  }

  TrainingFiles files_;
};

TEST_F(PixelClassifierTrainerTest, LearnsFromFoldersOfImagesAndIsServed) {
  const auto classifier = ValueOf(LoadTrainableTextClassifier(files_, {}));
  EXPECT_EQ(classifier->training_examples(), 16);
  EXPECT_THAT(classifier->data().call, HasSubstr("classify " + folder_.Path("held_out/above/108.png")));
  ClassifierTrainerOptions options = Options("model", 60);
  options.loop.optimizer.peak_learning_rate = 5e-3;
  options.loop.checkpoint_interval = 60;  // each waits for the disk
  ASSERT_TRUE(TrainClassifier(options, *classifier).ok());
  const at::Tensor trained = HeldOutLogits(*classifier, "model");
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(At(trained, 2 * i) > At(trained, 2 * i + 1), i < 4) << i;  // above first

  const auto directory = OpenModelDirectory(folder_.Path("model"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto served = LoadTextClassifier(*directory, {});
  ASSERT_TRUE(served.ok()) << served.status();
  const auto preprocessor = MakePixelSequencePreprocessor({.height = kSide, .width = kSide}, {});
  const ClassifierItem image = preprocessor->Decode(folder_.Read("held_out/above/108.png")).value();
  const auto replica = served->NewReplica({}).value();
  const auto result = replica->Classify({&image});  // views the replica's memory
  ASSERT_TRUE(result.ok()) << result.status();
  for (int64_t i = 0; i < 2; ++i) EXPECT_NEAR(result->rows[i], At(trained, i), 1e-5) << i;
}

TEST_F(PixelClassifierTrainerTest, BrokenDataIsNamed) {
  folder_.Write("train/below/999.png", "not an image");
  EXPECT_THAT(std::string(LoadTrainableTextClassifier(files_, {}).status().message()), HasSubstr("below/999.png"));
  files_.train = folder_.Write("texts.jsonl", R"({"label": "above", "text": "an upper half"})");
  EXPECT_THAT(std::string(LoadTrainableTextClassifier(files_, {}).status().message()), HasSubstr("texts.jsonl"));
}

}  // namespace longshort::models::pixel_classifier_trainer_test
