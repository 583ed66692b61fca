#include "models/classifiers/image_classifier.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/gpu_backends.h"
#include "models/layers/kept_memory.h"
#include "models/layers/library_error.h"
#include "models/layers/library_threads.h"
#include "models/layers/micro_batches.h"
#include "models/layers/placed_networks.h"
#include "models/layers/stored_tensor.h"
#include "models/weights/labels.h"

namespace longshort {
namespace {

// Images of a fraction of this are run together; most are larger, and are run by themselves: their tensors fill a
// core's cache.
constexpr MicroBatchWork kMicroBatchMultiplyAdds = {.least = 20'000'000, .most = 80'000'000};

// The images that the items are, all of the first one's size.
// Errors: INVALID_ARGUMENT naming the index of an item that is no image, or has another size or number of values.
absl::StatusOr<std::vector<const ImageItem*>> ImagesOf(absl::Span<const ClassifierItem* const> items,
                                                       int64_t channels) {
  std::vector<const ImageItem*> images;
  for (size_t i = 0; i < items.size(); ++i) {
    const ImageItem* const image = std::get_if<ImageItem>(items[i]);
    if (image == nullptr) return absl::InvalidArgumentError(absl::StrFormat("item %d is no image", i));
    images.push_back(image);
    const ImageItem& first = *images.front();
    if (image->height != first.height || image->width != first.width) {
      return absl::InvalidArgumentError(
          absl::StrFormat("image %d has %d x %d pixels (height x width), image 0 has %d x %d; a batch has one size", i,
                          image->height, image->width, first.height, first.width));
    }
    const auto values = static_cast<int64_t>(image->values.size());
    if (image->height < 1 || image->width < 1 || values != channels * image->height * image->width) {
      return absl::InvalidArgumentError(
          absl::StrFormat("image %d has %d values; %d channels of %d x %d pixels (height x width) are needed", i,
                          values, channels, image->height, image->width));
    }
  }
  return images;
}

class ImageClassifier final : public Classifier {
 public:
  struct Options {
    ClassifierInfo info;
    ImageShape image_shape;
    int64_t head_width = 0;
    const GpuBackends* gpus = nullptr;
  };
  // Errors: those of MakeItemAttention.
  static absl::StatusOr<std::unique_ptr<ImageClassifier>> Create(Options options, PlacedNetworks<ImageNetwork> networks,
                                                                 const PlacedNetworks<ImageNetwork>::Place& place) {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<ItemAttention> attention,
                        MakeItemAttention(options.gpus, place.device, options.head_width));
    return std::unique_ptr<ImageClassifier>(
        new ImageClassifier(std::move(options), std::move(networks), place, std::move(attention)));
  }

  const ClassifierInfo& info() const override { return options_.info; }

  absl::StatusOr<std::unique_ptr<Classifier>> Replicate(const WorkerDevice& device) const override {
    LS_ASSIGN_OR_RETURN(const PlacedNetworks<ImageNetwork>::Place place, networks_.On(device));
    try {
      LS_ASSIGN_OR_RETURN(std::unique_ptr<ImageClassifier> replica, Create(options_, networks_, place));
      if (replica->attention_ != nullptr) {
        LS_RETURN_IF_ERROR(replica->attention_->PrepareImages(options_.image_shape, replica->layers_));
      }
      return replica;
    } catch (const std::exception& error) {
      return LibraryError("to make a replica of the model", error);
    }
  }

  absl::StatusOr<ClassifierResult> Classify(absl::Span<const ClassifierItem* const> items) override {
    if (items.empty()) return absl::InvalidArgumentError("a batch needs at least 1 image");
    LS_ASSIGN_OR_RETURN(const std::vector<const ImageItem*> images, ImagesOf(items, info().channels));
    LS_RETURN_IF_ERROR(network_->CheckSize(images.front()->height, images.front()->width));
    try {
      return Run(images);
    } catch (const std::exception& error) {
      return LibraryError(absl::StrCat("on a batch of ", images.size(), " images"), error);
    }
  }

  void Rest() override {
    GiveBackThreads();
    kept_memory_.Rest();
  }

 private:
  ImageClassifier(Options options, PlacedNetworks<ImageNetwork> networks,
                  const PlacedNetworks<ImageNetwork>::Place& place, std::unique_ptr<ItemAttention> attention)
      : options_(std::move(options)),
        networks_(std::move(networks)),
        network_(place.network),
        attention_(std::move(attention)),
        layers_([network = network_.get(), attention = attention_.get()](const at::Tensor& images) {
          return network->Logits(images, attention);
        }),
        runner_(place.device.threads) {}

  ClassifierResult Run(absl::Span<const ImageItem* const> images) {
    const int64_t image_work = network_->MultiplyAdds(images.front()->height, images.front()->width);
    if (attention_ != nullptr) {
      const c10::InferenceMode inference;
      return {.logits = attention_->RunImages(images, info().channels, layers_),
              .counts = {.multiply_adds = image_work * static_cast<int64_t>(images.size())}};
    }
    logits_.resize(images.size() * info().classes);
    kept_memory_.Use();
    const std::vector<int64_t> work(images.size(), image_work);
    const int64_t multiply_adds = runner_.Run(work, kMicroBatchMultiplyAdds, [&](const MicroBatch& batch) {
      RunMicroBatch(images.subspan(batch.first_item, batch.items), &logits_[batch.first_item * info().classes]);
      return batch.work;
    });
    return {.logits = logits_, .counts = {.multiply_adds = multiply_adds}};
  }

  // Writes `logits`, [images, classes]. Any thread may call it.
  void RunMicroBatch(absl::Span<const ImageItem* const> images, float* logits) const {
    const c10::InferenceMode inference;  // of this thread
    const ImageItem& first = *images.front();
    const at::Tensor batch =
        at::empty({static_cast<int64_t>(images.size()), info().channels, first.height, first.width}, at::kFloat);
    float* next = batch.mutable_data_ptr<float>();
    for (const ImageItem* const image : images) next = std::copy(image->values.begin(), image->values.end(), next);
    const at::Tensor made = network_->Logits(batch, /*attention=*/nullptr).contiguous();
    std::copy_n(made.const_data_ptr<float>(), made.numel(), logits);
  }

  KeptMemory kept_memory_;  // the first: ends last
  Options options_;
  PlacedNetworks<ImageNetwork> networks_;
  std::shared_ptr<const ImageNetwork> network_;  // the one of them that runs here
  std::unique_ptr<ItemAttention> attention_;     // null on the CPU
  const ItemAttention::ImageLayers layers_;
  MicroBatchRunner runner_;
  std::vector<float> logits_;  // of the last batch on the CPU
};

}  // namespace

absl::StatusOr<std::unique_ptr<Classifier>> MakeImageClassifier(
    const ImageNetworkFacts& facts, const ModelDirectory& directory, const ClassifierOptions& options,
    const std::function<std::unique_ptr<ImageNetwork>(const TensorSource& read)>& make) {
  ClassifierInfo info;
  info.architecture = facts.architecture;
  info.input = ClassifierInput::kImage;
  info.classes = facts.classes;
  info.parameters = facts.parameters;
  info.precision = options.InfoPrecision();
  info.fingerprint = directory.fingerprint;
  info.channels = facts.image_shape.channels;
  if (options.gpus != nullptr) {
    info.gpu_workspace_bytes = options.gpus->ImageGraphBytes(facts.image_shape.values(), facts.classes);
  }
  if (directory.labels_text) {
    LS_ASSIGN_OR_RETURN(info.labels, ParseLabels(*directory.labels_text, facts.classes, directory.labels_path()));
  }
  TensorReader reader(directory.weights);
  try {
    const c10::InferenceMode inference;
    const OneThread one_thread;
    const std::unique_ptr<ImageNetwork> network = make([&](const std::string& name) { return reader.Read(name); });
    LS_RETURN_IF_ERROR(reader.Finish());
    const PlacedNetworks<ImageNetwork> networks(options, [&network](TensorMove& move) { return network->Copy(move); });
    return ImageClassifier::Create({.info = std::move(info),
                                    .image_shape = facts.image_shape,
                                    .head_width = facts.head_width,
                                    .gpus = options.gpus},
                                   networks, networks.First());
  } catch (const std::exception& error) {
    LS_RETURN_IF_ERROR(reader.status());
    return LibraryError(absl::StrCat("while loading ", directory.path), error);
  }
}

}  // namespace longshort
