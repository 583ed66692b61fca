// An image classifier that is served on a GPU, which is emulated.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/families/cvt/cvt_network.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/cvt/random_cvt.h"
#include "tests/models/families/language_model/emulated_backends.h"

namespace longshort::models::image_classifier_on_gpu_test {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr WorkerDevice kGpu = {.kind = DeviceKind::kEmulated};
constexpr int64_t kHeight = 23, kWidth = 15;

class ImageClassifierOnGpu : public ::testing::Test {
 protected:
  ImageClassifierOnGpu() {
    config_.preprocessing.crop_height = kHeight;
    config_.preprocessing.crop_width = kWidth;
    EXPECT_THAT(WriteImageModel(directory_, ToJson(config_), RandomCvtTensors(config_, /*seed=*/1)), IsOk());
    loss_->SetListener([this](const std::string& why) { losses_.push_back(why); });
  }

  absl::StatusOr<ClassifierWeights> Load(const std::vector<WorkerDevice>& devices,
                                         const std::string& precision = "fp32") {
    const auto opened = OpenModelDirectory(directory_.path());
    if (!opened.ok()) return opened.status();
    return LoadCvt(*opened, {.precision = precision, .threads = 1, .devices = devices, .gpus = &backends_});
  }
  ClassifierWeights::Replica LoadOnGpu() {
    const auto weights = Load({kGpu});
    return weights.ok() ? weights->NewReplica(kGpu) : weights.status();
  }
  static absl::StatusOr<std::vector<float>> Classify(Classifier& classifier, int64_t images, int64_t height = kHeight,
                                                     ClassifierOutput output = ClassifierOutput::kLogits) {
    std::vector<ClassifierItem> items;
    for (const at::Tensor& image : RandomImages(images, height, kWidth, /*seed=*/2).unbind(0)) {
      items.push_back(ImageItemOf(image));
    }
    std::vector<const ClassifierItem*> batch;
    for (const ClassifierItem& item : items) batch.push_back(&item);
    const absl::StatusOr<ClassifierResult> result = classifier.Run(batch, output);
    if (!result.ok()) return result.status();
    return std::vector<float>(result->rows.begin(), result->rows.end());
  }

  const TemporaryDirectory directory_;
  CvtConfig config_ = SmallCvt();
  const std::shared_ptr<GpuLoss> loss_ = std::make_shared<GpuLoss>();
  std::vector<std::string> losses_;
  std::vector<EmulatedDevice*> devices_;  // in the order of their opening
  DeviceFault fault_ = DeviceFault::kError;
  int64_t fault_after_ = -1;  // calls of a device that is opened; -1: none
  const EmulatedBackends backends_{{},
                                   [this](EmulatedDevice& device) {
                                     if (fault_after_ >= 0) device.FailAfter(fault_after_, fault_);
                                     devices_.push_back(&device);
                                   },
                                   loss_};
};

TEST_F(ImageClassifierOnGpu, AnswersWhatItAnswersOnTheCpuByGraphsAndWithout) {
  const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}).value();
  ASSERT_EQ(devices_.size(), 0u) << "only replicas have one";
  const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
  const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
  ASSERT_EQ(devices_.size(), 1u);
  const int64_t prepared = devices_[0]->replays();
  EXPECT_EQ(prepared, kMaxGraphImages);
  for (const int64_t images : {1, 2, 3}) {
    EXPECT_THAT(Classify(*on_gpu, images).value(), Pointwise(FloatNear(2e-5), Classify(*on_cpu, images).value()));
  }
  EXPECT_EQ(devices_[0]->replays(), prepared + 2);
  // Images of another size: call by call.
  EXPECT_THAT(Classify(*on_gpu, 1, 30).value(), Pointwise(FloatNear(2e-5), Classify(*on_cpu, 1, 30).value()));
  EXPECT_EQ(devices_[0]->replays(), prepared + 2);
}

TEST_F(ImageClassifierOnGpu, EmbedsWithoutGraphsWhatItEmbedsOnTheCpu) {
  const ClassifierWeights weights = Load({kGpu, {.kind = DeviceKind::kCpu}}).value();
  const std::unique_ptr<Classifier> on_gpu = weights.NewReplica(kGpu).value();
  const std::unique_ptr<Classifier> on_cpu = weights.NewReplica({.kind = DeviceKind::kCpu}).value();
  const int64_t prepared = devices_[0]->replays();
  const auto embed = [](Classifier& classifier) {
    return Classify(classifier, 2, kHeight, ClassifierOutput::kFeatures).value();
  };
  const std::vector<float> expected = embed(*on_cpu);
  EXPECT_EQ(expected.size(), 2 * on_cpu->info().width);
  EXPECT_THAT(embed(*on_gpu), Pointwise(FloatNear(2e-5), expected));
  EXPECT_EQ(devices_[0]->replays(), prepared);
  EXPECT_THAT(Classify(*on_gpu, 2).value(), Pointwise(FloatNear(2e-5), Classify(*on_cpu, 2).value()));
  EXPECT_EQ(devices_[0]->replays(), prepared + 1) << "graphs still compute logits";
}

TEST_F(ImageClassifierOnGpu, AnswersInBFloat16ByGraphsToo) {
  const std::unique_ptr<Classifier> in_bfloat16 = Load({kGpu}, "bf16").value().NewReplica(kGpu).value();
  EXPECT_EQ(in_bfloat16->info().precision, "bf16");
  const std::unique_ptr<Classifier> on_cpu = Load({}, "fp32").value().NewReplica({}).value();
  const std::vector<float> found = Classify(*in_bfloat16, 2).value(), expected = Classify(*on_cpu, 2).value();
  EXPECT_THAT(found, Pointwise(FloatNear(0.05), expected));
  EXPECT_NE(found, expected);
}

TEST_F(ImageClassifierOnGpu, HasNoReplicaWhereItsGraphsCannotBeMade) {
  for (const auto& [fault, code] : {std::pair{DeviceFault::kOutOfMemory, absl::StatusCode::kResourceExhausted},
                                    {DeviceFault::kError, absl::StatusCode::kInternal}}) {
    fault_ = fault;
    fault_after_ = 8;
    EXPECT_EQ(LoadOnGpu().status().code(), code);
  }
  EXPECT_THAT(losses_, ElementsAre());
}

TEST_F(ImageClassifierOnGpu, HasNoReplicaWhereTheLibraryOpensNoStream) {
  const EmulatedBackends backends{{}, [](EmulatedDevice&) { throw std::runtime_error("no stream"); }};
  const ModelDirectory opened = OpenModelDirectory(directory_.path()).value();
  const ClassifierWeights weights = LoadCvt(opened, {.threads = 1, .devices = {kGpu}, .gpus = &backends}).value();
  EXPECT_THAT(weights.NewReplica(kGpu).status().ToString(), HasSubstr("INTERNAL: LibTorch failed to make a replica"));
}

TEST_F(ImageClassifierOnGpu, AFailedBatchIsThatAndNothingElse) {
  const std::unique_ptr<Classifier> classifier = LoadOnGpu().value();
  const std::vector<float> expected = Classify(*classifier, 2).value();
  // Each of the batches on the device at once has its own memory on the host.
  for (int64_t batch = 1; batch < classifier->batches_at_once(); ++batch) {
    ASSERT_EQ(Classify(*classifier, 2).value(), expected);
  }
  const int64_t before = devices_[0]->calls();
  ASSERT_THAT(Classify(*classifier, 2), IsOk());
  const int64_t calls = devices_[0]->calls() - before;
  EXPECT_LE(calls, 7);  // a wait for the last upload, a copy, an event, the graph, a copy, an event, a wait
  for (int64_t call = 0; call < calls; ++call) {
    devices_[0]->FailAfter(call, DeviceFault::kError);
    EXPECT_EQ(Classify(*classifier, 2).status().code(), absl::StatusCode::kInternal) << call;
    EXPECT_EQ(Classify(*classifier, 2).value(), expected) << call;
  }
  EXPECT_THAT(losses_, ElementsAre());
  devices_[0]->FailAfter(2, DeviceFault::kLost);
  EXPECT_EQ(Classify(*classifier, 2).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(losses_, ElementsAre(HasSubstr("the emulated device is lost")));
}

}  // namespace longshort::models::image_classifier_on_gpu_test
