#include "models/families/served_classifier.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/device/library.h"
#include "models/load_options.h"
#include "models/ops/layers/linear.h"
#include "models/ops/products/packed_matrix.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

class ServedClassifier : public Classifier {
 public:
  ServedClassifier(std::shared_ptr<const ClassifierInfo> info, std::shared_ptr<const ServedNetwork> network)
      : info_(std::move(info)), network_(std::move(network)) {}

  const ClassifierInfo& info() const final { return *info_; }

  absl::StatusOr<ClassifierResult> Run(ServedNetwork::Items items, ClassifierOutput output) final {
    LS_RETURN_IF_ERROR(CheckAndUse(items, output));
    return Catch(items.size(), [&]() -> absl::StatusOr<ClassifierResult> { return RunChecked(items, output); });
  }

  void Rest() final {
    ReleaseThreads();
    kept_memory_.Rest();
  }

 protected:
  virtual ClassifierResult RunChecked(ServedNetwork::Items items, ClassifierOutput output) = 0;

  // Errors: those of Run for its arguments.
  absl::Status CheckAndUse(ServedNetwork::Items items, ClassifierOutput output) {
    if (items.empty()) return absl::InvalidArgumentError("a batch must have at least 1 item");
    LS_RETURN_IF_ERROR(info_->CheckHas(output));
    LS_RETURN_IF_ERROR(network_->Check(items, output));
    kept_memory_.Use();
    return absl::OkStatus();
  }
  // Returns the result of `work` on a batch, or its exception as a status.
  template <typename Work>
  static auto Catch(size_t items, const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const std::exception& error) {
      return LibraryError(absl::StrCat("on a batch of ", items, " items"), error);
    }
  }
  const ServedNetwork& network() const { return *network_; }

 private:
  KeptMemory kept_memory_;                            // first, so that it is destroyed last
  const std::shared_ptr<const ClassifierInfo> info_;  // shared by all replicas
  const std::shared_ptr<const ServedNetwork> network_;
};

class CpuRunner final : public ServedClassifier {
 public:
  CpuRunner(std::shared_ptr<const ClassifierInfo> info, std::shared_ptr<const ServedNetwork> network, int threads)
      : ServedClassifier(std::move(info), std::move(network)), micro_batches_(threads) {}

 private:
  ClassifierResult RunChecked(ServedNetwork::Items items, ClassifierOutput output) override {
    const int64_t width = info().WidthOf(output);
    rows_.resize(items.size() * width);
    const auto run = [&](const MicroBatch& batch) {
      const c10::InferenceMode inference;  // of this thread
      const ServedNetwork::Output done = network().Run(items.subspan(batch.first_item, batch.items), output);
      const at::Tensor rows = done.rows.contiguous();
      std::copy_n(rows.const_data_ptr<float>(), rows.numel(), &rows_[batch.first_item * width]);
      return done.multiply_adds;
    };
    const int64_t multiply_adds = micro_batches_.Run(network().Work(items), network().micro_batch_work(), run);
    return {.rows = rows_, .counts = {.multiply_adds = multiply_adds}};
  }

  MicroBatchRunner micro_batches_;
  std::vector<float> rows_;  // of the last batch
};

class GpuRunner final : public ServedClassifier {
 public:
  GpuRunner(std::shared_ptr<const ClassifierInfo> info, std::shared_ptr<const ServedNetwork> network,
            std::unique_ptr<GpuItemAttention> gpu)
      : ServedClassifier(std::move(info), std::move(network)), gpu_(std::move(gpu)) {}

  absl::Status BeginBatch(ServedNetwork::Items items, ClassifierOutput output) override {
    LS_RETURN_IF_ERROR(CheckAndUse(items, output));
    return Catch(items.size(), [&]() -> absl::Status {
      Begin(items, output);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<ClassifierResult> FinishBatch() override {
    return Catch(begun_.front().items, [this]() -> absl::StatusOr<ClassifierResult> { return Finish(); });
  }
  int64_t batches_at_once() const override { return GpuItemAttention::kBatchesAtOnce; }

 private:
  struct BegunBatch {
    size_t items = 0;
    int64_t multiply_adds = 0;
  };

  ClassifierResult RunChecked(ServedNetwork::Items items, ClassifierOutput output) override {
    Begin(items, output);
    return Finish();
  }
  void Begin(ServedNetwork::Items items, ClassifierOutput output) {
    const c10::InferenceMode inference;
    begun_.push_back({.items = items.size(), .multiply_adds = network().BeginOn(*gpu_, items, output)});
  }
  ClassifierResult Finish() {
    const BegunBatch batch = begun_.front();
    begun_.pop_front();
    return {.rows = gpu_->FinishBatch(), .counts = {.multiply_adds = batch.multiply_adds}};
  }

  const std::unique_ptr<GpuItemAttention> gpu_;
  std::deque<BegunBatch> begun_;
};

// A model's weights on one device.
struct PlacedNetwork {
  explicit PlacedNetwork(std::shared_ptr<const ServedNetwork> here) : network(std::move(here)) {}

  KeptMemory kept_memory;  // first, so that it is destroyed last
  const std::shared_ptr<const ServedNetwork> network;
};

// `gpus`: null only for the CPU.
ClassifierWeights::Replica NewReplica(std::shared_ptr<const ClassifierInfo> info,
                                      std::shared_ptr<const ServedNetwork> network, int64_t head_width,
                                      const GpuBackends* gpus, const WorkerDevice& worker) {
  try {
    if (worker.kind == DeviceKind::kCpu)
      return std::make_unique<CpuRunner>(std::move(info), std::move(network), worker.threads);
    LS_ASSIGN_OR_RETURN(std::unique_ptr<GpuItemAttention> gpu, gpus->MakeItemAttention(worker, head_width));
    LS_RETURN_IF_ERROR(network->PrepareOn(*gpu));
    return std::make_unique<GpuRunner>(std::move(info), std::move(network), std::move(gpu));
  } catch (const std::exception& error) {
    return LibraryError("to make a replica of the model", error);
  }
}

// The type of a network's products, and of its packed weights. kQInt8: rows are int8, too (Pack).
at::ScalarType ProductType(std::string_view precision, const WorkerDevice& device, const ServedNetwork& network) {
  if (precision == "fp32") return at::kFloat;
  if (device.kind != DeviceKind::kCpu) return at::kBFloat16;
  if (!network.GainsFromNarrowProducts()) return at::kFloat;
  if (HasBFloat16Tiles()) return at::kBFloat16;
  return precision == "int8" && cpu::HasInt8DotProducts() ? at::kQInt8 : at::kFloat;
}

std::string_view PrecisionName(at::ScalarType type) {
  if (type == at::kFloat) return "fp32";
  return type == at::kQInt8 ? "int8" : "bf16";
}

}  // namespace

absl::StatusOr<ClassifierWeights> LoadServedClassifier(
    ClassifierInfo info, int64_t head_width, const ModelDirectory& directory, const LoadOptions& options,
    const std::function<std::shared_ptr<const ServedNetwork>(const TensorSource& read)>& make) {
  const std::vector<WorkerDevice> devices = options.DevicesOrCpu();
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
    ClassifierWeights weights;
    for (const WorkerDevice& device : devices) {
      if (device.kind != DeviceKind::kCpu) {
        if (options.gpus == nullptr) {
          return absl::UnimplementedError(absl::StrCat("no classifier runs on ", DeviceName(device), " in this build"));
        }
        options.gpus->BeginLoading(device);
      }
      const at::ScalarType type = ProductType(options.precision, device, *network);
      info.precision = PrecisionName(type);
      const auto info_here = std::make_shared<const ClassifierInfo>(info);
      const bool packs = device.kind == DeviceKind::kCpu && (type != at::kFloat || network->IsFasterInPanels());
      const bool on_cpu = device.kind == DeviceKind::kCpu;
      TensorMove move = !on_cpu ? TensorMove::ForGpu(TensorDevice(device), type)
                        : packs ? TensorMove::Packing(type)
                                : TensorMove(at::kCPU, type);
      const auto here = std::make_shared<const PlacedNetwork>(network->Copy(move));
      const auto new_replica = [info_here, head_width, gpus = options.gpus, here](const WorkerDevice& worker) {
        return NewReplica(info_here, {here, here->network.get()}, head_width, gpus, worker);
      };
      weights.places.push_back({device, info, new_replica});
    }
    return weights;
  } catch (const std::exception& error) {
    LS_RETURN_IF_ERROR(reader.status());
    return LibraryError(absl::StrCat("while loading ", directory.path), error);
  }
}

}  // namespace longshort::models
