// docs/adding_a_model.md is true: the toy family is this folder and a word in the list of families. The loader and the
// engine of the server take it, and `describe` knows it.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "base/clock.h"
#include "core/classification/dynamic_batching_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/family.h"
#include "models/families/load_model.h"
#include "models/ops/layers/linear.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/models/families/toy/toy_config.h"

namespace longshort::models::toy_family_test {

using ::testing::HasSubstr;

// The preprocessing changes no value: it neither resizes an image of 4 x 4 pixels nor normalises.
constexpr const char* kConfig =
    R"({"architecture": "toy", "cells": 2, "width": 8, "channels": 3, "classes": 5, "layer_norm_epsilon": 1e-5,
        "preprocessing": {"resize_shorter_side": 4, "crop_height": 4, "crop_width": 4, "mean": [0, 0, 0],
                          "standard_deviation": [1, 1, 1]}})";

class ToyFamily : public testing::Test {
 protected:
  void SetUp() override {
    const auto config = ParseToyConfig(kConfig, "config.json");
    ASSERT_THAT(config, IsOk());
    directory_.Write("config.json", kConfig);
    std::vector<NamedTensor> named;
    for (const TensorShape& tensor : ToyTensors(*config)) {
      const auto [place, is_new] = tensors_.emplace(tensor.name, at::randn(tensor.shape));
      named.push_back(AsNamed(tensor.name, place->second));
    }
    ASSERT_THAT(WriteSafetensors(directory_.File("model.safetensors"), named), IsOk());
  }

  // The logits of an image [3, 4, 4], by the plain operations.
  at::Tensor Logits(const at::Tensor& image) const {
    const auto linear = [this](const std::string& name, const at::Tensor& rows) {
      return at::addmv(tensors_.at(name + ".bias"), tensors_.at(name + ".weight"), rows);
    };
    const at::Tensor means = image.unflatten(1, {2, 2}).unflatten(3, {2, 2}).mean({2, 4}).flatten();
    const at::Tensor hidden =
        at::layer_norm(linear("hidden", means), {8}, tensors_.at("norm.weight"), tensors_.at("norm.bias"));
    return linear("head", hidden);
  }

  TemporaryDirectory directory_;
  std::map<std::string, at::Tensor> tensors_;
};

TEST_F(ToyFamily, IsLoadedAndServed) {
  auto loaded = LoadModel(directory_.path(), {.threads = 1});
  ASSERT_THAT(loaded, IsOk());
  LoadedClassifier& model = std::get<LoadedClassifier>(*loaded);
  // hidden: 8 x (3 * 2 * 2) and 8; norm: 2 * 8; head: 5 x 8 and 5.
  EXPECT_EQ(model.weights.info().parameters, 8 * 12 + 8 + 2 * 8 + 5 * 8 + 5);
  EXPECT_EQ(model.sizes.host_bytes, 4 * model.weights.info().parameters);

  const at::Tensor pixels = at::rand({4, 4, 3});
  const float* const first = pixels.const_data_ptr<float>();
  const auto item = model.preprocessor->Convert(
      {.height = 4, .width = 4, .channels = 3, .values = absl::MakeConstSpan(first, pixels.numel())});
  ASSERT_THAT(item, IsOk());
  const core::DynamicBatchingEngine::Options options;
  auto engine = core::DynamicBatchingEngine::Create(std::move(model.weights), *core::FairPool::Create(1),
                                                    /*observer=*/nullptr, SystemClock(), options);
  ASSERT_THAT(engine, IsOk());
  const auto listener = std::make_shared<core::RecordingClassificationListener>();
  ASSERT_THAT((*engine)->Classify({.context = {}, .item = *item}, listener), IsOk());
  ASSERT_TRUE(listener->end.Wait());
  ASSERT_THAT(listener->scores, IsOk());
  const at::Tensor expected = Logits(pixels.permute({2, 0, 1}));
  ASSERT_EQ(listener->scores->row.size(), 5u);
  for (int64_t label = 0; label < 5; ++label) {
    EXPECT_NEAR(listener->scores->row[label], expected[label].item<float>(), 1e-5);
  }
}

TEST_F(ToyFamily, IsDescribed) {
  const auto description = DescribeConfig(kConfig, "config.json");
  ASSERT_THAT(description, IsOk());
  EXPECT_EQ(description->parameters(), 8 * 12 + 8 + 2 * 8 + 5 * 8 + 5);
  EXPECT_EQ(description->work(), 8 * 12 + 5 * 8 + StageCost::kPerNormElement * 8);
  EXPECT_THAT(ConfigPage(), HasSubstr("## Toy\n\nA classifier by mean colours."));
}

TEST_F(ToyFamily, StandsBesideTheOthers) {
  directory_.Write("config.json", R"({"architecture": "tiny"})");
  EXPECT_THAT(LoadModel(directory_.path(), {}).status().message(),
              HasSubstr("one of language_model, text_classifier, vil, cvt, toy"));
}

}  // namespace longshort::models::toy_family_test
