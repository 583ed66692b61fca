#include "models/classifiers/served_classifier.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/gpu_backends.h"
#include "models/layers/kept_memory.h"
#include "models/layers/library_error.h"
#include "models/layers/library_threads.h"
#include "models/layers/stored_tensor.h"
#include "models/weights/labels.h"

namespace longshort {
namespace {

// What all runners of a model share. Immutable.
struct Weights {
  // The network on one of the model's devices, in the type of numbers that the device computes in.
  struct Place {
    WorkerDevice device;
    std::shared_ptr<const ServedNetwork> network;
  };

  // Errors: UNIMPLEMENTED for a device that the model is not on.
  absl::StatusOr<Place> On(WorkerDevice device) const {
    for (const Place& place : places) {
      if (!place.device.IsOnDeviceOf(device)) continue;
      if (device.threads == 0) device.threads = place.device.threads;
      return Place{device, place.network};
    }
    return absl::UnimplementedError(
        absl::StrCat("the model is on ", DeviceName(places.front().device), " and cannot run on ", DeviceName(device)));
  }

  ClassifierInfo info;
  int64_t head_width = 0;
  const GpuBackends* gpus = nullptr;
  std::vector<Place> places;
};

enum class Graphs { kNone, kPrepared };

absl::StatusOr<std::unique_ptr<Classifier>> NewRunner(std::shared_ptr<const Weights> weights, Weights::Place place,
                                                      Graphs graphs);

class ServedClassifier : public Classifier {
 public:
  ServedClassifier(std::shared_ptr<const Weights> weights, std::shared_ptr<const ServedNetwork> network)
      : weights_(std::move(weights)), network_(std::move(network)) {}

  const ClassifierInfo& info() const final { return weights_->info; }

  absl::StatusOr<std::unique_ptr<Classifier>> Replicate(const WorkerDevice& device) const final {
    LS_ASSIGN_OR_RETURN(Weights::Place place, weights_->On(device));
    try {
      return NewRunner(weights_, std::move(place), Graphs::kPrepared);
    } catch (const std::exception& error) {
      return LibraryError("to make a replica of the model", error);
    }
  }

  absl::StatusOr<ClassifierResult> Classify(ServedNetwork::Items items) final {
    if (items.empty()) return absl::InvalidArgumentError("a batch needs at least 1 item");
    LS_RETURN_IF_ERROR(network_->Check(items));
    try {
      return Run(items);
    } catch (const std::exception& error) {
      return LibraryError(absl::StrCat("on a batch of ", items.size(), " items"), error);
    }
  }

  void Rest() final {
    GiveBackThreads();
    kept_memory_.Rest();
  }

 protected:
  virtual ClassifierResult Run(ServedNetwork::Items items) = 0;

  const ServedNetwork& network() const { return *network_; }
  KeptMemory& kept_memory() { return kept_memory_; }

 private:
  KeptMemory kept_memory_;  // the first: ends last
  const std::shared_ptr<const Weights> weights_;
  const std::shared_ptr<const ServedNetwork> network_;  // the one of them that runs here
};

class CpuRunner final : public ServedClassifier {
 public:
  CpuRunner(std::shared_ptr<const Weights> weights, Weights::Place place)
      : ServedClassifier(std::move(weights), std::move(place.network)), micro_batches_(place.device.threads) {}

 private:
  ClassifierResult Run(ServedNetwork::Items items) override {
    logits_.resize(items.size() * info().classes);
    kept_memory().Use();
    const auto run = [&](const MicroBatch& batch) {
      const c10::InferenceMode inference;  // of this thread
      const ServedNetwork::Output output = network().Run(items.subspan(batch.first_item, batch.items));
      const at::Tensor logits = output.logits.contiguous();
      std::copy_n(logits.const_data_ptr<float>(), logits.numel(), &logits_[batch.first_item * info().classes]);
      return output.multiply_adds;
    };
    const int64_t multiply_adds = micro_batches_.Run(network().Work(items), network().micro_batch_work(), run);
    return {.logits = logits_, .counts = {.multiply_adds = multiply_adds}};
  }

  MicroBatchRunner micro_batches_;
  std::vector<float> logits_;  // of the last batch
};

class GpuRunner final : public ServedClassifier {
 public:
  GpuRunner(std::shared_ptr<const Weights> weights, Weights::Place place, std::unique_ptr<GpuItemAttention> gpu)
      : ServedClassifier(std::move(weights), std::move(place.network)), gpu_(std::move(gpu)) {}

 private:
  ClassifierResult Run(ServedNetwork::Items items) override {
    const c10::InferenceMode inference;
    return network().RunOn(*gpu_, items);
  }

  const std::unique_ptr<GpuItemAttention> gpu_;
};

absl::StatusOr<std::unique_ptr<Classifier>> NewRunner(std::shared_ptr<const Weights> weights, Weights::Place place,
                                                      Graphs graphs) {
  if (place.device.kind == DeviceKind::kCpu) return std::make_unique<CpuRunner>(std::move(weights), std::move(place));
  if (weights->gpus == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no classifier runs on ", DeviceName(place.device), " in this build"));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuItemAttention> gpu,
                      weights->gpus->MakeItemAttention(place.device, weights->head_width));
  if (graphs == Graphs::kPrepared) LS_RETURN_IF_ERROR(place.network->PrepareOn(*gpu));
  return std::make_unique<GpuRunner>(std::move(weights), std::move(place), std::move(gpu));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Classifier>> LoadServedClassifier(
    ClassifierInfo info, int64_t head_width, const ModelDirectory& directory, const LoadOptions& options,
    const std::function<std::shared_ptr<const ServedNetwork>(const TensorSource& read)>& make) {
  info.precision = options.ComputesInBFloat16() ? "bf16" : "fp32";
  info.fingerprint = directory.fingerprint;
  if (directory.labels_text) {
    LS_ASSIGN_OR_RETURN(info.labels, ParseLabels(*directory.labels_text, info.classes, directory.labels_path()));
  }
  TensorReader reader(directory.weights);
  try {
    const c10::InferenceMode inference;
    const OneThread one_thread;
    const auto network = make([&](const std::string& name) { return reader.Read(name); });
    LS_RETURN_IF_ERROR(reader.Finish());
    auto weights = std::make_shared<Weights>();
    weights->info = std::move(info);
    weights->head_width = head_width;
    weights->gpus = options.gpus;
    for (const WorkerDevice& device : options.DevicesOrCpu()) {
      if (options.gpus != nullptr && device.kind != DeviceKind::kCpu) options.gpus->BeginLoading(device);
      TensorMove move(TensorDevice(device), options.ComputesInBFloat16(device) ? at::kBFloat16 : at::kFloat);
      weights->places.push_back({device, network->Copy(move)});
    }
    Weights::Place first = weights->places.front();
    return NewRunner(std::move(weights), std::move(first), Graphs::kNone);
  } catch (const std::exception& error) {
    LS_RETURN_IF_ERROR(reader.status());
    return LibraryError(absl::StrCat("while loading ", directory.path), error);
  }
}

}  // namespace longshort
