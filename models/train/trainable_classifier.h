// The interface between the classifiers' trainer and a family of models: labelled examples, and the served module, run
// so that gradients reach its weights.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/ops/layers/dropout.h"
#include "models/train/divided_data.h"
#include "models/train/example_order.h"
#include "models/train/image_augmentation.h"
#include "models/train/labelled_data.h"
#include "models/train/labelled_texts.h"
#include "models/train/model_writer.h"
#include "models/train/parameters.h"
#include "models/train/training_run.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// What the families have in common.
struct ClassifierData {
  DataDescription description;
  std::vector<TensorShape> tensors;                   // the model's
  InitialWeights official = InitialWeights::kScaled;  // the distribution of the family's official code
  std::vector<NamedParameter> begin;                  // the weights that the run begins with; the others are random
  std::vector<ModelFile> files;                       // of the model directory, except the weights
  RunSettings settings;                               // the properties of model and data that determine a run
  // A call of the client with a held-out example: the end of its command, and what is piped to it (NextSteps).
  std::string call, input;
};

// Examples that are not trained on.
enum class EvaluatedPart { kHeldOut, kValidation };

// Threads: the shards call Train concurrently, each with its own weights, and Evaluate with the same weights.
class TrainableClassifier {
 public:
  explicit TrainableClassifier(ClassifierData data) : data_(std::move(data)) {}
  virtual ~TrainableClassifier() = default;

  const ClassifierData& data() const { return data_; }
  int64_t training_examples() const { return std::ssize(data_.description.train); }
  int64_t held_out_examples() const { return std::ssize(data_.description.held_out); }
  const std::vector<Target>& TargetsOf(EvaluatedPart part) const {
    return part == EvaluatedPart::kHeldOut ? data_.description.held_out : data_.description.validation;
  }

  // The initial weights. `seed` determines the random ones.
  std::vector<NamedParameter> InitialParameters(uint64_t seed, bool official = false) const {
    std::vector<NamedParameter> parameters =
        longshort::models::InitialParameters(data_.tensors, seed, official ? data_.official : InitialWeights::kScaled);
    Overwrite(data_.begin, parameters);
    return parameters;
  }

  // Reorders the batch, so that draws that are cheap to compute together are adjacent.
  virtual void Arrange(std::vector<Draw>& /*batch*/) const {}

  struct Scores {
    at::Tensor logits;  // [examples, classes]
    // [examples, classes]: the target probability of each class, or the scaled numbers of a regression (ScaleOf).
    at::Tensor targets;
    std::vector<at::Tensor> statistics;  // of batch normalisation; the same number of tensors in each call
  };
  // The scores of training examples. Their variation depends only on `seed` and the draw's number.
  virtual Scores Train(const std::vector<NamedParameter>& parameters, absl::Span<const Draw> draws,
                       uint64_t seed) const = 0;
  // Moves the running statistics in `parameters` towards `statistics`, the mean over a step's calls of Train.
  virtual void MoveStatistics(const std::vector<NamedParameter>& /*parameters*/,
                              const std::vector<at::Tensor>& /*statistics*/) const {}
  // The scores of a part's examples [first, first + count), computed as the server computes them.
  virtual Scores Evaluate(const std::vector<NamedParameter>& parameters, EvaluatedPart part, int64_t first,
                          int64_t count) const = 0;
  Scores HeldOut(const std::vector<NamedParameter>& parameters, int64_t first, int64_t count) const {
    return Evaluate(parameters, EvaluatedPart::kHeldOut, first, count);
  }

  struct WrittenWeights {
    std::vector<NamedParameter> weights;
    std::vector<std::string_view> exact;  // the names of those that need float32
  };
  // The weights of the model directory, from trained ones.
  virtual WrittenWeights Written(const std::vector<NamedParameter>& trained) const {
    return {.weights = trained, .exact = {}};
  }

 private:
  ClassifierData data_;
};

// The files that the command line names, and what is made without them.
struct TrainingFiles {
  // config.json of the model to train; an image classifier must be a CvT*-LS. Empty: that of `from`, or a preset of
  // `size`, with the data's classes.
  std::string config;
  std::string from;                         // model directory with whose weights the run begins; empty: random weights
  std::string size = "small";               // "small" or "medium"
  std::string vocabulary;                   // the tokenizer's file, if it reads one
  std::string train;                        // texts (labelled_texts.h), or a folder of class folders of images
  std::string held_out;                     // in the same format; empty: a fraction of `train`, which is not trained on
  Division division = {};                   // its problem is that of the model
  std::optional<ProblemType> problem = {};  // of texts; absent: that of `config` or `from`, or a single label
  TextFormat format = {};                   // of texts; its problem and documents are those of the model
};

struct TextVariationOptions {
  int64_t crop_tokens = 0;   // length of the random piece to which a longer document is cut each time; 0: no cut
  double masked_tokens = 0;  // fraction of a document's tokens to mask, chosen at random each time
  DropoutRates dropout = {};
};

// Reads and tokenises all of the files, as TokeniseTexts (tokenised_texts.h).
// Errors: those of reading and of Divide; INVALID_ARGUMENT naming the file and the problem.
absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableTextClassifier(const TrainingFiles& files,
                                                                                 const TextVariationOptions& variation);

// Reads all images, and decodes each to check it. They are kept as encoded and decoded again for each use. Held-out
// images are prepared as in the server. Errors: those of reading, of decoding and of Divide; INVALID_ARGUMENT naming
// the file and the problem.
absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableImageClassifier(
    const TrainingFiles& files, const AugmentationOptions& augmentation);

// The trainer's options. Each step takes one batch.
struct ClassifierTrainerOptions : RunOptions {
  ClassifierTrainerOptions() { batch = 32; }

  int64_t group = 8;           // examples that the model runs at once; batch normalisation uses their statistics
  double label_smoothing = 0;  // fraction of a target's probability that is spread over all classes
  // Decay per step of a running average of the weights (smaller in the first steps). The average is evaluated and
  // written instead of the weights. 0: the weights are.
  double average_decay = 0;
};

// Trains, and writes the model directory unless the run is stopped before its last step.
// Errors: INVALID_ARGUMENT for options that contradict each other; those of TrainModel and of the file system.
absl::Status TrainClassifier(const ClassifierTrainerOptions& options, const TrainableClassifier& classifier);

}  // namespace longshort::models
