#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/commands.h"
#include "models/train/trainable_classifier.h"

namespace longshort::models {
namespace {

// The defaults for text and image classifiers.
ClassifierTrainerOptions DefaultClassifierOptions() {
  ClassifierTrainerOptions options;
  options.loop.optimizer.peak_learning_rate = 1e-3;
  options.loop.optimizer.weight_decay = 0.05;
  options.loop.optimizer.beta2 = 0.98;  // batches are small
  return options;
}

void AddClassifierTraining(OptionTable& table, ClassifierTrainerOptions& options, RunLength& length) {
  AddOutput(table, options.output_directory, options.loop);
  table.BeginSection("Training:");
  AddLoop(table, options.loop, length);
  table.Add("batch", "N", "Examples in a step.", &options.batch, {1, kMaxInBatch});
  table.Add("group", "N", "Examples that the model runs at once. Batch normalisation uses their statistics.",
            &options.group, {1, kMaxInBatch});
  table.Add("shards", "N", "Threads that share the groups of a step. Each uses one core.", &options.shards,
            {1, kMaxShards});
  table.Add("seed", "N", "Seed of the initial weights, and of the examples' order and variation.", &options.seed);
  AddInitialWeights(table, options.official_weights);
  table.Add("label-smoothing", "X", "Fraction of a target's probability that is spread over all classes.",
            &options.label_smoothing, {0, 0.99});
  table.Add("average-decay", "X",
            "Decay per step of a running average of the weights. The average is evaluated and written instead of the "
            "weights; 0: the weights are.",
            &options.average_decay, {0, 0.999999});
}

// The options of a classifier's data and form. `data` is the hint and the help of --train.
void AddClassifierFiles(OptionTable& table, TrainingFiles& files, const std::string& hint, const std::string& data) {
  table.Add("train", hint, data + " May be given without --train=. Required.", &files.train);
  table.Add("held-out", hint, "Labelled data to evaluate on, in the same format. By default a part of --train.",
            &files.held_out);
  table.Add("held-out-fraction", "X",
            "Fraction of each class in --train that is held out from training, without --held-out.",
            &files.division.held_out_fraction, {0.001, 0.9});
  table.Add(
      "validation-fraction", "X",
      "Fraction of each class in --train that --keep-best uses to choose the weights, and that is not trained on; "
      "0: it uses the held-out data.",
      &files.division.validation_fraction, {0, 0.9});
  table.Add(
      "min-examples", "N",
      "Leave out the labels of fewer different examples in --train. With single labels, their examples are left out, "
      "too.",
      &files.division.min_examples, {1, int64_t{1} << 30});
  table.AddChoice("size", {{"small", std::string("small")}, {"medium", std::string("medium")}},
                  "Size of the model, without --config and --from. The classes follow from the data.", &files.size);
  table.Add(
      "from", "MODEL",
      "Model directory to begin with, also a converted one. Its form is the model's. If its labels are not those of "
      "the data, its last layer begins with random weights.",
      &files.from);
}

// Refuses options that others make meaningless.
absl::Status CheckFiles(const TrainingFiles& files) {
  const TrainingFiles defaults;
  if (!files.config.empty() && !files.from.empty()) {
    return absl::InvalidArgumentError("--config and --from exclude each other: the form is that of --from");
  }
  if (!files.vocabulary.empty() && !files.from.empty()) {
    return absl::InvalidArgumentError("--vocabulary and --from exclude each other: the tokenizer is that of --from");
  }
  if (files.size != defaults.size && (!files.config.empty() || !files.from.empty())) {
    return absl::InvalidArgumentError("--size is of models without --config and --from, which have a size already");
  }
  if (files.division.held_out_fraction != defaults.division.held_out_fraction && !files.held_out.empty()) {
    return absl::InvalidArgumentError("--held-out-fraction and --held-out exclude each other");
  }
  if (files.format.label_separator.empty()) return absl::InvalidArgumentError("--label-separator must not be empty");
  return absl::OkStatus();
}

// Completes the options of a classifier, loads its data, and trains.
absl::Status CompleteAndTrain(const std::vector<std::string>& others, const RunLength& length,
                              ClassifierTrainerOptions& options, TrainingFiles& files,
                              absl::FunctionRef<absl::StatusOr<std::unique_ptr<TrainableClassifier>>()> load) {
  LS_RETURN_IF_ERROR(CompletePaths(others, files.train, options.output_directory));
  LS_RETURN_IF_ERROR(CheckFiles(files));
  // A smaller batch alone is no mistake.
  if (options.group == ClassifierTrainerOptions().group) options.group = std::min(options.group, options.batch);
  LS_RETURN_IF_ERROR(CompleteLoop(options.output_directory, length, options.loop));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TrainableClassifier> classifier, load());
  return TrainClassifier(options, *classifier);
}

}  // namespace

absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  RunLength length;
  std::vector<std::string> others;
  TextVariationOptions variation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the model to train. It is copied unchanged.", &files.config);
  table.Add("vocabulary", "FILE", "vocabulary.txt of the ListOps tokenizers, or tokenizer.json of byte_level_bpe.",
            &files.vocabulary);
  AddClassifierFiles(
      table, files, "DATA",
      "Labelled texts to train on: a folder with a folder of files for each class, a .csv or .tsv file with "
      "the columns label and text, or JSON Lines like {\"label\": \"pos\", \"text\": \"...\"}, with "
      "\"second_text\" for models of two documents. The sorted labels are the classes. For a model whose tokenizer is "
      "pixels, a folder with a folder of images for each class.");
  table.Add("text-column", "NAME", "Column or field of the texts.", &files.format.text_column);
  table.Add("label-column", "NAME", "Column or field of the labels.", &files.format.label_column);
  table.AddChoice(
      "problem",
      {{"single-label", std::optional(ProblemType::kSingleLabel)},
       {"multi-label", std::optional(ProblemType::kMultiLabel)},
       {"regression", std::optional(ProblemType::kRegression)}},
      "What a text has: one label; any number of labels, in JSON Lines a list like [\"a\", \"b\"] or []; or "
      "a number. By default that of --config or --from, or single-label.",
      &files.problem);
  table.Add("label-separator", "TEXT", "Separator of several labels in a table's column, with --problem=multi-label.",
            &files.format.label_separator);
  table.Add("encoding", "NAME", "Encoding of the texts, for example windows-1252. iconv --list prints all.",
            &files.format.encoding);
  AddClassifierTraining(table, options, length);
  table.Add("crop-tokens", "N", "Length of the random piece to which a longer document is cut each time; 0: no cut.",
            &variation.crop_tokens, {0, int64_t{1} << 30});
  table.Add("masked-tokens", "X", "Fraction of a document's tokens to mask, chosen at random each time.",
            &variation.masked_tokens, {0, 0.99});
  AddDropout(table, variation.dropout.rows);
  table.Add("attention-dropout", "X", "Probability with which training drops a probability of attention.",
            &variation.dropout.attention, {0, 0.99});
  LS_ASSIGN_OR_RETURN(
      const bool trains,
      ReadOptions(
          std::move(table), arguments,
          "longshort-train text-classifier: trains a classifier of documents.\n\n"
          "  longshort-train text-classifier reviews.csv --text-column=review --out=my_models/reviews/1 --time=10m\n"
          "  longshort-train text-classifier topics.jsonl --problem=multi-label\n"
          "  longshort-train text-classifier ratings.csv --label-column=stars --problem=regression",
          others));
  if (!trains) return absl::OkStatus();
  return CompleteAndTrain(others, length, options, files,
                          [&] { return LoadTrainableTextClassifier(files, variation); });
}

absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  RunLength length;
  std::vector<std::string> others;
  AugmentationOptions augmentation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the CvT*-LS to train. It is copied unchanged.", &files.config);
  AddClassifierFiles(
      table, files, "DIR",
      "Directory of images to train on: for each class a folder with JPEG, PNG or WebP files. The folders' "
      "sorted names are the classes.");
  AddClassifierTraining(table, options, length);
  table.Add("image-side", "N",
            "Side of the training images in pixels; 0: that of the preprocessing's crop. Objects look larger in random "
            "crops than in whole images, so training images may be smaller than served ones.",
            &augmentation.side, {0, 65536});
  table.Add("smallest-crop", "X", "Minimum area of a random crop, as a fraction of the image.",
            &augmentation.smallest_crop, {0.001, 1});
  table.Add("colour-jitter", "X", "Maximum random change of brightness, contrast and saturation, as a fraction.",
            &augmentation.colour_jitter, {0, 0.99});
  table.Add("cutmix", "X", "Probability that a rectangle of another image, with its target, is mixed into an image.",
            &augmentation.cutmix, {0, 1});
  AddBfloat16Products(table, options.bfloat16_products);
  LS_ASSIGN_OR_RETURN(const bool trains,
                      ReadOptions(std::move(table), arguments,
                                  "longshort-train image-classifier: trains a CvT*-LS on labelled images.\n\n"
                                  "  longshort-train image-classifier photos --out=my_models/photos/1 --time=1h",
                                  others));
  if (!trains) return absl::OkStatus();
  return CompleteAndTrain(others, length, options, files,
                          [&] { return LoadTrainableImageClassifier(files, augmentation); });
}

}  // namespace longshort::models
