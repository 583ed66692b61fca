// Long-document encoders trained, written, loaded and served.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "nlohmann/json.hpp"
#include "tests/models/tokenizer/byte_level_bpe_file.h"
#include "tests/models/train/classifier_training.h"

namespace longshort::models::encoder_trainer_test {

using ::testing::HasSubstr;

class EncoderTrainerTest : public ClassifierTrainingTest {
 protected:
  EncoderTrainerTest() {
    files_.vocabulary = folder_.Write("tokenizer.json", ByteLevelBpeFile().dump());
    files_.train = folder_.Write("train.jsonl", Pairs(0, 40));
    files_.held_out = folder_.Write("held_out.jsonl", Pairs(40, 52));
    files_.config = folder_.Write("config.json", Config({}));
  }

  static std::string Config(const nlohmann::json& changed) {
    nlohmann::json config = nlohmann::json::parse(
        R"({"architecture": "text_classifier", "tokenizer": "byte_level_bpe", "layers": 2, "model_width": 16,
            "heads": 2, "feed_forward_width": 32, "window_size": 4, "projection_rank": 2, "vocabulary_size": 300,
            "max_sequence_length": 24, "cls": "first_token", "normalized_cls": false, "value_convolution": 0,
            "tied_layers": false, "documents": 2, "classes": 2, "layer_norm": "after", "padding_id": 1,
            "head": "tanh"})");
    if (!changed.is_null()) config.update(changed);
    return config.dump();
  }

  static std::string FirstText(int i) { return (i % 2 == 0 ? "x" : "y") + std::string(i % 31, 'f'); }
  static std::string SecondText(int i) { return "the " + std::string(i % 7, 'g'); }
  // The first text's letter decides the label. Some pairs have more tokens than the model reads.
  static std::string Pairs(int first, int last) {
    std::string lines;
    for (int i = first; i < last; ++i) {
      const nlohmann::json line = {
          {"label", i % 2 == 0 ? "x" : "y"}, {"text", FirstText(i)}, {"second_text", SecondText(i)}};
      lines += line.dump() + "\n";
    }
    return lines;
  }

  std::unique_ptr<TrainableClassifier> Load(const TextVariationOptions& variation) const {
    return ValueOf(LoadTrainableTextClassifier(files_, variation));
  }

  TrainingFiles files_;
};

TEST_F(EncoderTrainerTest, AStoppedRunGoesOnExactlyWhereItStopped) {
  ExpectAStoppedRunGoesOn(*Load({.crop_tokens = 8, .masked_tokens = 0.2}));
}

TEST_F(EncoderTrainerTest, TheServedModelGivesTheTrainingModulesLogits) {
  const auto classifier = Load({});
  ASSERT_TRUE(TrainClassifier(Options("model", 12), *classifier).ok());
  EXPECT_EQ(folder_.Read("model/tokenizer.json"), folder_.Read("tokenizer.json"));
  const auto directory = OpenModelDirectory(folder_.Path("model"));
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto served = LoadTextClassifier(*directory, {});
  ASSERT_TRUE(served.ok()) << served.status();
  const auto tokenizer = LoadDocumentTokenizer(*directory);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  const at::Tensor trained = HeldOutLogits(*classifier, "model");
  std::vector<ClassifierItem> items;
  for (const int i : {40, 41}) {
    items.push_back(
        TokenItem{{(*tokenizer)->Encode(FirstText(i)).value(), (*tokenizer)->Encode(SecondText(i)).value()}});
  }
  const std::unique_ptr<Classifier> replica = served->NewReplica({}).value();  // has the logits
  const auto result = replica->Classify({&items[0], &items[1]});
  ASSERT_TRUE(result.ok()) << result.status();
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(result->rows[i], At(trained, i), 1e-5) << i;
}

TEST_F(EncoderTrainerTest, LearnsWhatDecidesTheLabelInPiecesOfDocuments) {
  const auto classifier = Load({.crop_tokens = 20, .masked_tokens = 0.05});
  ClassifierTrainerOptions options = Options("learned", 150);
  options.loop.optimizer.peak_learning_rate = 5e-3;
  ASSERT_TRUE(TrainClassifier(options, *classifier).ok());
  const at::Tensor logits = HeldOutLogits(*classifier, "learned");
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(At(logits, 2 * i) > At(logits, 2 * i + 1), i % 2 == 0) << i;  // x first
}

TEST_F(EncoderTrainerTest, AnEncoderWithoutClassesGetsAHead) {
  files_.config = folder_.Write("config.json", Config({{"documents", 1}}));
  files_.train = folder_.Write("train.jsonl", R"({"label": "x", "text": "a"}
                                                 {"label": "y", "text": "b"})");
  files_.held_out = files_.train;
  ASSERT_TRUE(TrainClassifier(Options("first", 2), *Load({})).ok());
  folder_.Write("first/config.json", Config({{"documents", 1}, {"classes", 0}}));
  std::filesystem::remove(folder_.Path("first/labels.txt"));
  files_.from = folder_.Path("first");
  files_.config = files_.vocabulary = "";
  ASSERT_TRUE(TrainClassifier(Options("second", 2), *Load({})).ok());
  EXPECT_EQ(folder_.Read("second/labels.txt"), "x\ny\n");
  EXPECT_EQ(nlohmann::json::parse(folder_.Read("second/config.json"))["classes"], 2);
  EXPECT_EQ(folder_.Read("second/tokenizer.json"), folder_.Read("tokenizer.json"));
}

TEST_F(EncoderTrainerTest, WhatItCannotTrainIsRefused) {
  files_.problem = ProblemType::kRegression;
  EXPECT_THAT(LoadTrainableTextClassifier(files_, {}).status().message(),
              HasSubstr("config.json: its problem_type is not that of --problem; change one of them"));
  files_.problem.reset();
  files_.config = folder_.Write("config.json", Config({{"max_document_tokens", 3}}));
  EXPECT_THAT(LoadTrainableTextClassifier(files_, {}).status().message(), HasSubstr("a pair has at least 4 tokens"));
}

}  // namespace longshort::models::encoder_trainer_test
