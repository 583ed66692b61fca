#include "tests/determinism/tested_models.h"

#include <map>
#include <utility>

#include "ATen/core/Tensor.h"
#include "gtest/gtest.h"
#include "models/families/cvt/cvt_network.h"
#include "models/families/text_classifier/text_network.h"
#include "models/families/vil/vil_network.h"
#include "models/weights/model_directory.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/cvt/random_cvt.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"
#include "tests/models/families/text_classifier/random_text_model.h"
#include "tests/models/families/vil/random_vil.h"

namespace longshort {
namespace {

// Rank 3, layer norms behind, biases, positions that are clamped, a window that ends inside chunks.
models::LanguageModelConfig RankThree() {
  models::LanguageModelConfig config = models::SmallConfig();
  config.chunk_size = 8;
  config.chunk_rank = 3;
  config.window_length = 50;
  config.memory_length = 128;
  config.segment_length = 32;
  config.window_position_clamp = 30;
  config.chunk_position_clamp = 20;
  config.pre_layer_norm = false;
  config.projection_bias = true;
  config.activation = models::Activation::kRelu;
  return config;
}

// Segments longer than the memory; a window that ends inside a block.
models::LanguageModelConfig LongSegments() {
  models::LanguageModelConfig config = models::SmallConfig();
  config.chunk_size = 16;
  config.chunk_rank = 2;
  config.window_length = 100;
  config.memory_length = 112;
  config.segment_length = 256;
  return config;
}

// Matrix products large enough for the library to divide among threads, and to choose its kernels by their size.
models::LanguageModelConfig Wide() {
  models::LanguageModelConfig config = models::SmallConfig();
  config.model_width = 256;
  config.heads = 4;
  config.feed_forward_width = 2048;
  config.chunk_size = 16;
  config.window_length = 64;
  config.memory_length = 256;
  config.segment_length = 64;
  config.vocabulary_size = 208;
  return config;
}

models::LanguageModelWeights RandomModel(const models::LanguageModelConfig& config, uint64_t seed) {
  return models::RandomWeightsOn(models::TestedBackends().front(), config, seed);
}

models::ModelDirectory WriteAndOpen(const TemporaryDirectory& directory, const std::string& config,
                                    const std::map<std::string, at::Tensor>& tensors) {
  EXPECT_TRUE(models::WriteImageModel(directory, config, tensors).ok());
  return models::OpenModelDirectory(directory.path()).value();
}

models::ImageItem RandomImage(Random& random, int64_t height, int64_t width) {
  models::ImageItem image{.height = height, .width = width, .values = std::vector<float>(3 * height * width)};
  for (float& value : image.values) value = static_cast<float>(4 * Fraction(random) - 2);
  return image;
}

// Two documents an item, of 1 to 150 tokens.
TestedClassifier Texts() {
  models::TextClassifierConfig config = models::SmallTextConfig();
  config.documents = 2;
  config.max_sequence_length = 160;
  const TemporaryDirectory directory;
  models::WriteTextModel(directory.path(), config, 21);
  const auto random_item = [config](Random& random) -> models::ClassifierItem {
    models::TokenItem item;
    for (int64_t document = 0; document < config.documents; ++document) {
      std::vector<int32_t>& ids = item.documents.emplace_back(Between(random, 1, 150));
      for (int32_t& id : ids) id = static_cast<int32_t>(Between(random, 1, config.vocabulary_size - 1));
    }
    return item;
  };
  return {.name = "texts",
          .weights =
              models::LoadTextClassifier(models::OpenModelDirectory(directory.path()).value(), {.threads = 1}).value(),
          .random_item = random_item};
}

TestedClassifier Vil() {
  const models::VilConfig config =
      models::VilOf("l1,h2,d8,n1,s1,g1,p2,f4,a0,r2_l2,h2,d12,n1,s1,g1,p2,f2,a1,r3_l3,h4,d16,n1,s0,g0,p2", 16);
  const TemporaryDirectory directory;
  return {
      .name = "vil",
      .weights = models::LoadVil(WriteAndOpen(directory, models::ToJson(config), models::RandomVilTensors(config, 22)),
                                 {.threads = 1})
                     .value(),
      .random_item = [](Random& random) -> models::ClassifierItem { return RandomImage(random, 16, 16); }};
}

// Images of two sizes, so that batches are of one or the other.
TestedClassifier Cvt() {
  const models::CvtConfig config = models::SmallCvt();
  const TemporaryDirectory directory;
  return {
      .name = "cvt",
      .weights = models::LoadCvt(WriteAndOpen(directory, models::ToJson(config), models::RandomCvtTensors(config, 23)),
                                 {.threads = 1})
                     .value(),
      .random_item = [](Random& random) -> models::ClassifierItem {
        return Chance(random, 0.5) ? RandomImage(random, 45, 30) : RandomImage(random, 32, 48);
      }};
}

}  // namespace

std::vector<TestedLanguageModel> TestedLanguageModels() {
  std::vector<TestedLanguageModel> models;
  models.push_back({"small", RandomModel(models::SmallConfig(), 11)});
  models.push_back({"rank-3", RandomModel(RankThree(), 12)});
  models.push_back({"long-segments", RandomModel(LongSegments(), 13)});
  models.push_back({"wide", RandomModel(Wide(), 14)});
  return models;
}

std::vector<TestedClassifier> TestedClassifiers() {
  std::vector<TestedClassifier> classifiers;
  classifiers.push_back(Texts());
  classifiers.push_back(Vil());
  classifiers.push_back(Cvt());
  return classifiers;
}

}  // namespace longshort
