// A text classifier that is served on a GPU, which is emulated.

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/families/text_classifier/text_network.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/language_model/emulated_backends.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::models::text_classifier_on_gpu_test {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr WorkerDevice kGpu = {.kind = DeviceKind::kEmulated};

class TextClassifierOnGpu : public ::testing::Test {
 protected:
  TextClassifierOnGpu() {
    config_.layers = 1;  // a batch has few calls, and each is let fail
    loss_->SetListener([this](const std::string& why) { losses_.push_back(why); });
  }

  absl::StatusOr<ClassifierWeights> Load(const std::vector<WorkerDevice>& devices, const GpuBackends* gpus) {
    const TemporaryDirectory directory;
    WriteTextModel(directory.path(), config_, /*seed=*/1);
    const auto opened = OpenModelDirectory(directory.path());
    if (!opened.ok()) return opened.status();
    return LoadTextClassifier(*opened, {.threads = 1, .devices = devices, .gpus = gpus});
  }
  std::unique_ptr<Classifier> LoadOnGpu() { return Load({kGpu}, &backends_).value().NewReplica(kGpu).value(); }

  // Documents of 30 and of 40 tokens, together more rows than graphs have.
  static absl::StatusOr<std::vector<float>> Compute(Classifier& classifier, ClassifierOutput output) {
    const std::vector<ClassifierItem> items = {TokenItem{{std::vector<int32_t>(30, 3)}},
                                               TokenItem{{std::vector<int32_t>(40, 5)}}};
    const absl::StatusOr<ClassifierResult> result = classifier.Run({&items[0], &items[1]}, output);
    if (!result.ok()) return result.status();
    return std::vector<float>(result->rows.begin(), result->rows.end());
  }
  static absl::StatusOr<std::vector<float>> Classify(Classifier& classifier) {
    return Compute(classifier, ClassifierOutput::kLogits);
  }

  // Begins a batch whose documents need not exist any longer.
  static absl::Status Begin(Classifier& classifier, const std::vector<std::vector<int32_t>>& documents) {
    std::vector<ClassifierItem> items;
    for (const std::vector<int32_t>& document : documents) items.push_back(TokenItem{{document}});
    std::vector<const ClassifierItem*> batch;
    for (const ClassifierItem& item : items) batch.push_back(&item);
    return classifier.BeginBatch(batch, ClassifierOutput::kLogits);
  }
  static std::vector<float> Finish(Classifier& classifier) {
    const absl::StatusOr<ClassifierResult> result = classifier.FinishBatch();
    EXPECT_THAT(result, IsOk());
    return result.ok() ? std::vector<float>(result->rows.begin(), result->rows.end()) : std::vector<float>();
  }

  // The first two have graphs, the third has not.
  const std::vector<std::vector<std::vector<int32_t>>> batches_ = {
      {{1, 2, 3}, std::vector<int32_t>(30, 5)},
      {{7, 4, 4, 8}, {9}},
      {std::vector<int32_t>(39, 5), std::vector<int32_t>(38, 6)}};
  TextClassifierConfig config_ = SmallTextConfig();
  const std::shared_ptr<GpuLoss> loss_ = std::make_shared<GpuLoss>();
  std::vector<std::string> losses_;
  std::vector<EmulatedDevice*> devices_;  // in the order of their opening
  int64_t fault_after_ = -1;              // calls of a device that is opened; -1: none
  const EmulatedBackends backends_{{},
                                   [this](EmulatedDevice& device) {
                                     if (fault_after_ >= 0) device.FailAfter(fault_after_, DeviceFault::kOutOfMemory);
                                     devices_.push_back(&device);
                                   },
                                   loss_};
};

TEST_F(TextClassifierOnGpu, AnswersWhatItAnswersOnTheCpu) {
  const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}, &backends_).value();
  const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
  const std::vector<float> expected = Classify(*on_cpu).value();
  EXPECT_THAT(devices_, IsEmpty());
  const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
  const int64_t replays = devices_[0]->replays();
  EXPECT_THAT(Classify(*on_gpu).value(), Pointwise(FloatNear(2e-5), expected));
  EXPECT_EQ(devices_[0]->replays(), replays);
  EXPECT_EQ(devices_[0]->kernels_run().count("AttendInDocuments"), 1u);
}

TEST_F(TextClassifierOnGpu, EmbedsWhatItEmbedsOnTheCpu) {
  config_.max_sequence_length = 64;
  for (const ClsKind cls : {ClsKind::kNone, ClsKind::kLastLayer, ClsKind::kAllLayers, ClsKind::kVocabulary}) {
    config_.cls = cls;
    const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}, &backends_).value();
    const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
    const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
    for (const ClassifierOutput output : {ClassifierOutput::kFeatures, ClassifierOutput::kMeanOfTokens}) {
      const std::vector<float> expected = Compute(*on_cpu, output).value();
      ASSERT_EQ(expected.size(), 2 * config_.model_width);
      EXPECT_THAT(Compute(*on_gpu, output).value(), Pointwise(FloatNear(2e-5), expected));
    }
  }
}

TEST_F(TextClassifierOnGpu, TheFirstBatchOfAThreadUsesItsOwnStream) {
  const std::unique_ptr<Classifier> classifier = LoadOnGpu(), opened_last = LoadOnGpu();
  absl::StatusOr<std::vector<float>> of_thread;
  std::thread([&] { of_thread = Classify(*classifier); }).join();
  ASSERT_THAT(of_thread, IsOk());
  EXPECT_EQ(Classify(*classifier).value(), *of_thread);
}

TEST_F(TextClassifierOnGpu, AFaultOfAnyCallFailsItsBatchAndNothingElse) {
  const std::unique_ptr<Classifier> classifier = LoadOnGpu();
  EmulatedDevice& device = *devices_.front();
  ASSERT_THAT(Classify(*classifier), IsOk());
  ASSERT_THAT(Classify(*classifier), IsOk());  // both pieces of pinned memory are there
  const int64_t before = device.calls();
  const std::vector<float> expected = Classify(*classifier).value();
  const int64_t calls = device.calls() - before;
  ASSERT_GT(calls, 10);
  for (int64_t call = 0; call < calls; ++call) {
    device.FailAfter(call, DeviceFault::kError);
    EXPECT_EQ(Classify(*classifier).status().code(), absl::StatusCode::kInternal) << call;
    const absl::StatusOr<std::vector<float>> again = Classify(*classifier);
    ASSERT_THAT(again, IsOk()) << call;
    EXPECT_EQ(*again, expected) << call;
  }
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(TextClassifierOnGpu, TwoBatchesAtOnceHaveTheBitsOfOneAfterTheOther) {
  const std::unique_ptr<Classifier> classifier = LoadOnGpu();
  ASSERT_EQ(classifier->batches_at_once(), 2);
  std::vector<std::vector<float>> alone;
  for (const auto& documents : batches_) {
    ASSERT_THAT(Begin(*classifier, documents), IsOk());
    alone.push_back(Finish(*classifier));
  }
  for (size_t first = 0; first < batches_.size(); ++first) {
    for (size_t second = 0; second < batches_.size(); ++second) {
      ASSERT_THAT(Begin(*classifier, batches_[first]), IsOk());
      ASSERT_THAT(Begin(*classifier, batches_[second]), IsOk());
      EXPECT_EQ(Finish(*classifier), alone[first]) << first << " " << second;
      EXPECT_EQ(Finish(*classifier), alone[second]) << first << " " << second;
    }
  }
}

TEST_F(TextClassifierOnGpu, AFaultOfTheNextBatchIsNotThatOfTheOneThatRuns) {
  for (const auto& documents : {batches_[1], batches_[2]}) {
    const std::unique_ptr<Classifier> classifier = LoadOnGpu();
    ASSERT_THAT(Begin(*classifier, batches_[0]), IsOk());
    const std::vector<float> expected = Finish(*classifier);
    int64_t call = 0;
    for (;; ++call) {
      ASSERT_THAT(Begin(*classifier, batches_[0]), IsOk());
      devices_.back()->FailAfter(call, DeviceFault::kError);
      const absl::Status status = Begin(*classifier, documents);
      if (status.ok()) break;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << call;
      devices_.back()->FailAfter(-1, DeviceFault::kError);
      EXPECT_EQ(Finish(*classifier), expected) << call;
    }
    EXPECT_GE(call, 4);
    devices_.back()->FailAfter(-1, DeviceFault::kError);
    EXPECT_EQ(Finish(*classifier), expected);
    Finish(*classifier);
  }
}

TEST_F(TextClassifierOnGpu, ABatchForWhichThereIsNoMemoryFailsAsThatAndNothingElse) {
  int64_t call = 0;
  for (;; ++call) {
    const std::unique_ptr<Classifier> classifier = LoadOnGpu();
    devices_.back()->FailAfter(call, DeviceFault::kOutOfMemory);
    const absl::Status status = Classify(*classifier).status();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
    ASSERT_THAT(Classify(*classifier), IsOk()) << call;
  }
  EXPECT_GT(call, 13);  // of the first batch, which allocates memory, all were let fail
}

TEST_F(TextClassifierOnGpu, AGpuThatIsLostIsReportedOnceAndAReplicaHasAStreamOfItsOwn) {
  const ClassifierWeights weights = Load({kGpu}, &backends_).value();
  const std::unique_ptr<Classifier> classifier = weights.NewReplica(kGpu).value();
  const std::unique_ptr<Classifier> replica = weights.NewReplica(kGpu).value();
  ASSERT_EQ(devices_.size(), 2u);
  const std::vector<float> expected = Classify(*classifier).value();
  devices_[0]->FailAfter(7, DeviceFault::kLost);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Classify(*classifier).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(losses_, ElementsAre(HasSubstr("emulated: the emulated device is lost")));
  EXPECT_THAT(Classify(*replica).value(), Pointwise(FloatNear(2e-5), expected));
}

TEST_F(TextClassifierOnGpu, AnswersByGraphsWhatItAnswersOnTheCpu) {
  config_.layers = 2;
  for (const ClsKind cls : {ClsKind::kNone, ClsKind::kAllLayers, ClsKind::kLastLayer, ClsKind::kVocabulary}) {
    config_.cls = cls;
    config_.value_convolution = cls == ClsKind::kNone ? 3 : 0;
    const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}, &backends_).value();
    const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
    const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
    const EmulatedDevice& device = *devices_.back();
    ASSERT_EQ(device.replays(), kMaxGraphDocuments) << "of 64 rows, of 2 documents and of 1";
    struct {
      std::vector<std::vector<int32_t>> documents;
      bool has_graph;
    } const batches[] = {
        {{{1, 2, 3}, std::vector<int32_t>(30, 5)}, true},
        {{std::vector<int32_t>(20, 4)}, true},  // rows of the previous batch are not used
        {{{7, 0, 0, 8}, {9}}, true},
        {{{7}, {8}, {9}}, false},
        {{std::vector<int32_t>(39, 5), std::vector<int32_t>(38, 6)}, false},
        {{{1, 2, 3}, std::vector<int32_t>(30, 5)}, true},
    };
    for (const auto& [documents, has_graph] : batches) {
      std::vector<ClassifierItem> items;
      for (const auto& document : documents) items.push_back(TokenItem{{document}});
      std::vector<const ClassifierItem*> batch;
      for (const ClassifierItem& item : items) batch.push_back(&item);
      const int64_t replays = device.replays();
      const ClassifierResult found = on_gpu->Classify(batch).value(), expected = on_cpu->Classify(batch).value();
      EXPECT_THAT(found.rows, Pointwise(FloatNear(2e-5), expected.rows)) << static_cast<int>(cls);
      EXPECT_EQ(found.counts.multiply_adds, expected.counts.multiply_adds);
      EXPECT_EQ(device.replays(), replays + (has_graph ? 1 : 0));
    }
  }
}

TEST_F(TextClassifierOnGpu, AnswersOfALongDocumentEncoderAreThoseOnTheCpu) {
  config_ = SmallEncoderConfig();
  for (const int64_t rank : {3, 0}) {
    config_.projection_rank = rank;
    config_.dual_norm = rank > 0;
    const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}, &backends_).value();
    const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
    const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
    const EmulatedDevice& device = *devices_.back();
    ASSERT_EQ(device.replays(), kMaxGraphDocuments);
    const std::vector<int32_t> longer(30, 5);
    struct {
      std::vector<TokenItem> items;
      bool has_graph;
    } const batches[] = {
        {{{{{0, 3, 2}, longer}}, {{{0, 4, 1, 1, 5, 2}}}}, true},  // a pair and a document with padding
        {{{{{0}}}}, true},                                        // one token
        {{{{{0}}}, {{{0}}}, {{{6}}}}, false},
        {{{{longer}}, {{std::vector<int32_t>(39, 6)}}}, false},
        {{{{{0}}}, {{longer}}}, true},
    };
    for (const auto& [items, has_graph] : batches) {
      const std::vector<ClassifierItem> held(items.begin(), items.end());
      std::vector<const ClassifierItem*> batch;
      for (const ClassifierItem& item : held) batch.push_back(&item);
      const int64_t replays = device.replays();
      const ClassifierResult found = on_gpu->Classify(batch).value(), expected = on_cpu->Classify(batch).value();
      EXPECT_THAT(found.rows, Pointwise(FloatNear(2e-5), expected.rows)) << items.size();
      EXPECT_EQ(found.counts.multiply_adds, expected.counts.multiply_adds);
      EXPECT_EQ(device.replays(), replays + (has_graph ? 1 : 0));
    }
  }
}

TEST_F(TextClassifierOnGpu, HasGraphsOfWholePairs) {
  config_.documents = 2;
  const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}, &backends_).value();
  const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
  const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
  EXPECT_EQ(devices_.back()->replays(), 1);
  const ClassifierItem pair = TokenItem{{{1, 2, 3}, {4, 5}}};
  const std::vector<const ClassifierItem*> batch = {&pair};
  EXPECT_THAT(on_gpu->Classify(batch).value().rows, Pointwise(FloatNear(2e-5), on_cpu->Classify(batch).value().rows));
  EXPECT_EQ(devices_.back()->replays(), 2);
}

TEST_F(TextClassifierOnGpu, HasNoReplicaWhereItsGraphsCannotBeMade) {
  const ClassifierWeights weights = Load({kGpu}, &backends_).value();
  int64_t call = 0;
  for (;; ++call) {
    fault_after_ = call;
    const absl::Status status = weights.NewReplica(kGpu).status();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
  }
  EXPECT_GT(call, 20);
}

TEST_F(TextClassifierOnGpu, HasNoReplicaWhereTheLibraryOpensNoStream) {
  const EmulatedBackends backends{{}, [](EmulatedDevice&) { throw std::runtime_error("no stream"); }};
  const ClassifierWeights weights = Load({kGpu}, &backends).value();
  EXPECT_THAT(weights.NewReplica(kGpu).status().ToString(), HasSubstr("INTERNAL: LibTorch failed to make a replica"));
}

TEST_F(TextClassifierOnGpu, WhatNoGpuRunsIsRefused) {
  EXPECT_THAT(Load({kGpu}, nullptr).status().ToString(),
              HasSubstr("UNIMPLEMENTED: no classifier runs on emulated:0 in this build"));
  const WorkerDevice ninth = {.kind = DeviceKind::kEmulated, .index = 8};
  EXPECT_THAT(Load({ninth}, &backends_).value().NewReplica(ninth),
              Refuses(std::vector<std::string>{"there is no emulated:8"}));
  config_.model_width = 258;
  EXPECT_THAT(Load({kGpu}, &backends_).value().NewReplica(kGpu).status().ToString(),
              HasSubstr("UNIMPLEMENTED: the model's heads are 129 wide"));
}

}  // namespace longshort::models::text_classifier_on_gpu_test
