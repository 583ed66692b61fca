// What the trainer of classifiers needs of a family of models: labelled examples, and the served module run so that
// gradients reach its weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/train/example_order.h"
#include "models/train/image_augmentation.h"
#include "models/train/model_writer.h"
#include "models/train/parameters.h"

namespace longshort::models {

// Threads: the shards call Train at the same time, each with weights of its own.
class TrainableClassifier {
 public:
  virtual ~TrainableClassifier() = default;

  virtual int64_t training_examples() const = 0;
  virtual int64_t held_out_examples() const = 0;

  // Random weights for training from nothing; `seed` decides every value.
  virtual std::vector<NamedParameter> InitialParameters(uint64_t seed) const = 0;

  // Puts draws that are cheap to compute together next to each other.
  virtual void Arrange(std::vector<Draw>& /*batch*/) const {}

  struct Scores {
    at::Tensor logits;                   // [examples, classes]
    at::Tensor targets;                  // [examples, classes]: how probable each class should be
    std::vector<at::Tensor> statistics;  // what batch normalisation saw; of as many tensors each time
  };
  // Training examples, varied as `seed` and the draws' numbers decide.
  virtual Scores Train(const std::vector<NamedParameter>& parameters, absl::Span<const Draw> draws,
                       uint64_t seed) const = 0;
  // Moves the running statistics among `parameters` towards those of a step, the mean over its calls of Train.
  virtual void MoveStatistics(const std::vector<NamedParameter>& /*parameters*/,
                              const std::vector<at::Tensor>& /*statistics*/) const {}
  // Held-out examples [first, first + count), as they are served.
  virtual Scores HeldOut(const std::vector<NamedParameter>& parameters, int64_t first, int64_t count) const = 0;

  // The files of the model directory beside the weights.
  virtual std::vector<ModelFile> Files() const = 0;
  // All of model and data that decides a run, as text.
  virtual std::string Settings() const = 0;
};

// What the command line names.
struct TrainingFiles {
  std::string config;      // config.json of the model to train; of image classifiers a CvT*-LS
  std::string vocabulary;  // vocabulary.txt, for the tokenizers that need one
  std::string train;       // JSON Lines, or a folder of class folders (labelled_data.h)
  std::string held_out;    // the same
};

struct TextVariationOptions {
  int64_t crop_tokens = 0;   // longer documents are trained on in random pieces of this length; 0: whole
  double masked_tokens = 0;  // this part of a document's tokens is masked, other ones each time
};

// Reads and tokenises all of the files. Documents longer than the model takes are cut at their end, as a request with
// `truncate` is.
// Errors: those of reading; INVALID_ARGUMENT naming the file and what is wrong with it.
absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableTextClassifier(const TrainingFiles& files,
                                                                                 const TextVariationOptions& variation);

// Reads and decodes all images. Training images are kept as 8-bit pixels; held-out images are prepared as the server
// does.
// Errors: those of reading and decoding; INVALID_ARGUMENT naming the file and what is wrong with it.
absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableImageClassifier(
    const TrainingFiles& files, const AugmentationOptions& augmentation);

}  // namespace longshort::models
