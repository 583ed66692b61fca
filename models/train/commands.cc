#include "models/train/commands.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/files.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/classifier_trainer.h"
#include "models/train/language_model_trainer.h"
#include "models/train/model_writer.h"
#include "models/train/trainable_classifier.h"

namespace longshort::models {
namespace {

constexpr int64_t kMaxSteps = 1'000'000'000;
constexpr int64_t kMaxInBatch = int64_t{1} << 20;
constexpr int64_t kMaxShards = 1024;

// Parses the options. If --help is given, prints `intro` and the table, and returns false.
absl::StatusOr<bool> Read(OptionTable table, const std::vector<std::string>& arguments, const std::string& intro) {
  bool help = false;
  table.BeginSection("Other:");
  table.AddSwitch("help", "Print this and exit.", &help);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (help) absl::PrintF("%s\n\n%s", intro, table.Help());
  return !help;
}

void AddOutput(OptionTable& table, std::string& output_directory, LoopOptions& loop) {
  table.Add("out", "DIR", "Model directory to write, for example models/zoo/NAME/1. Required.", &output_directory);
  table.Add("checkpoint", "FILE",
            "File that keeps the run's state. If it exists, the run continues from it. By default it is the folder of "
            "--out with .checkpoint added; 'none': a run that is stopped is lost.",
            &loop.checkpoint_path);
  table.AddSwitch("replace", "Replace a model and a checkpoint of another run. Otherwise they are an error.",
                  &loop.replace);
}

// The options that LoopOptions has in another form.
struct RunLength {
  std::optional<int64_t> steps;
  std::optional<absl::Duration> time;
};

// The checkpoint beside the model directory.
std::string DefaultCheckpoint(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  return directory + ".checkpoint";
}

// Completes the options that depend on others, and makes the folder of the default checkpoint.
absl::Status CompleteLoop(const std::string& output_directory, const RunLength& length, LoopOptions& loop) {
  loop.time_limit = length.time.value_or(absl::InfiniteDuration());
  loop.optimizer.total_steps = length.steps.value_or(length.time ? kMaxSteps : loop.optimizer.total_steps);
  if (loop.checkpoint_path == "none") {
    loop.checkpoint_path.clear();
  } else if (loop.checkpoint_path.empty()) {
    LS_RETURN_IF_ERROR(CheckModelDirectory(output_directory, ""));
    loop.checkpoint_path = DefaultCheckpoint(output_directory);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::absolute(loop.checkpoint_path).parent_path(), error);
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat("--out=", output_directory, " cannot be created: ", error.message()));
    }
  }
  return absl::OkStatus();
}

void AddLoop(OptionTable& table, LoopOptions& loop, RunLength& length) {
  OptimizerOptions& optimizer = loop.optimizer;
  table.Add("steps", "N",
            absl::StrCat("Optimizer steps of the whole run. The learning rate's schedule depends on it. Another number "
                         "continues a stopped run, lengthens a finished one, or ends it early. Default: ",
                         optimizer.total_steps, ", or as many as --time allows."),
            &length.steps, {1, kMaxSteps});
  table.Add(
      "time", "duration",
      "Training time of the whole run, for example 10m. The run ends at --steps or --time, whichever is first. The "
      "learning rate follows the time.",
      &length.time, {absl::Seconds(1), absl::Hours(24 * 365)});
  table.Add("stop-after-steps", "N", "Step after which the run saves its checkpoint and stops; 0: the last step.",
            &loop.stop_after_steps, {0, kMaxSteps});
  table.Add("learning-rate", "X", "Peak learning rate.", &optimizer.peak_learning_rate, {1e-9, 1000});
  table.Add("warmup-steps", "N", "Steps in which the learning rate rises to its peak.", &optimizer.warmup_steps,
            {0, kMaxSteps});
  table.Add("weight-decay", "X", "AdamW's weight decay. It applies only to matrices and kernels.",
            &optimizer.weight_decay, {0, 1000});
  table.Add("held-out-interval", "N", "Steps between evaluations on the held-out data; 0: none.",
            &loop.held_out_interval, {0, kMaxSteps});
  table.Add("checkpoint-interval", "N", "Steps between checkpoints.", &loop.checkpoint_interval, {1, kMaxSteps});
}

void AddBfloat16Products(OptionTable& table, bool& bfloat16_products) {
  table.AddSwitch("bfloat16-products",
                  "Multiply matrices in bfloat16. Weights and sums stay float32. This is slower on a processor without "
                  "bfloat16 instructions.",
                  &bfloat16_products);
}

// A model that two cores train in hours.
LanguageModelTrainerOptions DefaultLanguageModelOptions() {
  LanguageModelTrainerOptions options;
  options.config.layers = 5;
  options.config.model_width = 192;
  options.config.heads = 6;
  options.config.feed_forward_width = 768;
  options.config.window_length = 128;
  options.config.memory_length = 1024;
  options.shards = 2;
  return options;
}

// CheckLanguageModelConfig checks the ranges.
void AddModel(OptionTable& table, LanguageModelConfig& config) {
  table.Add("layers", "N", "Number of layers.", &config.layers);
  table.Add("model-width", "N", "Model width d. It must be even and a multiple of --heads.", &config.model_width);
  table.Add("heads", "N", "Number of attention heads.", &config.heads);
  table.Add("feed-forward-width", "N", "Width of the feed-forward network's hidden layer.", &config.feed_forward_width);
  table.Add("chunk-size", "N", "C, the tokens of a chunk, which the dynamic projection compresses.",
            &config.chunk_size);
  table.Add("chunk-rank", "N", "R, the vectors to which a chunk is compressed.", &config.chunk_rank);
  table.Add("window-length", "N", "W, the tokens that a token sees uncompressed, including itself.",
            &config.window_length);
  table.Add("memory-length", "N", "M, the tokens before the segment that a token sees in compressed form.",
            &config.memory_length);
  table.Add("segment-length", "N", "L, the tokens of a segment. It is part of the model: the server uses it too.",
            &config.segment_length);
}

void AddLanguageModelTraining(OptionTable& table, LanguageModelTrainerOptions& options, RunLength& length) {
  AddLoop(table, options.loop, length);
  table.Add("batch", "N", "Number of parallel streams of text.", &options.batch, {1, kMaxInBatch});
  table.Add("shards", "N", "Threads that share the streams of a step. Each uses one core.", &options.shards,
            {1, kMaxShards});
  table.Add("tokens-per-stream", "N", "Tokens of each stream in a step. Gradients reach this far back.",
            &options.tokens_per_stream, {1, kMaxInBatch});
  table.Add("seed", "N", "Seed of the initial weights.", &options.seed);
  table.Add("held-out", "X", "Fraction of the text, at its end, that is held out from training.",
            &options.held_out_fraction, {0.000001, 0.999999});
  AddBfloat16Products(table, options.bfloat16_products);
}

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
  table.Add("label-smoothing", "X", "Fraction of a target's probability that is spread over all classes.",
            &options.label_smoothing, {0, 0.99});
  table.Add("average-decay", "X",
            "Decay per step of a running average of the weights. The average is evaluated and written instead of the "
            "weights; 0: the weights are.",
            &options.average_decay, {0, 0.999999});
}

absl::Status CheckPaths(const TrainingFiles& files, const ClassifierTrainerOptions& options) {
  if (!files.config.empty() && !files.train.empty() && !files.held_out.empty() && !options.output_directory.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("--config, --train, --held-out and --out are required; see --help");
}

}  // namespace

absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments) {
  LanguageModelTrainerOptions options = DefaultLanguageModelOptions();
  std::string text_path;
  RunLength length;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("text", "FILE", "File of any bytes to train on. Its last part is held out (--held-out). Required.",
            &text_path);
  AddOutput(table, options.output_directory, options.loop);
  table.BeginSection("Model:");
  AddModel(table, options.config);
  table.BeginSection("Training:");
  AddLanguageModelTraining(table, options, length);
  LS_ASSIGN_OR_RETURN(const bool trains,
                      Read(std::move(table), arguments,
                           "longshort-train language-model: trains a byte language model on one text.\n\n"
                           "  longshort-train language-model --text=enwiki_p10.xml --out=models/zoo/enwiki/1 "
                           "--checkpoint=enwiki.checkpoint \\\n    --steps=5000"));
  if (!trains) return absl::OkStatus();
  if (text_path.empty() || options.output_directory.empty()) {
    return absl::InvalidArgumentError("--text and --out are required; see --help");
  }
  LS_RETURN_IF_ERROR(CompleteLoop(options.output_directory, length, options.loop));
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_path, size_t{1} << 32));
  return TrainLanguageModel(options, text);
}

absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  RunLength length;
  TextVariationOptions variation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the model to train. It is copied unchanged. Required.", &files.config);
  table.Add("vocabulary", "FILE", "vocabulary.txt, for the ListOps tokenizers.", &files.vocabulary);
  table.Add("train", "FILE",
            "Labelled documents to train on, one JSON object per line: {\"label\": \"pos\", \"text\": \"...\"}, and "
            "\"second_text\" for models of two documents. The sorted labels are the classes. Required.",
            &files.train);
  table.Add("held-out", "FILE", "Labelled documents to evaluate on, in the same format. Required.", &files.held_out);
  AddClassifierTraining(table, options, length);
  table.Add("crop-tokens", "N", "Length of the random piece to which a longer document is cut each time; 0: no cut.",
            &variation.crop_tokens, {0, int64_t{1} << 30});
  table.Add("masked-tokens", "X", "Fraction of a document's tokens to mask, chosen at random each time.",
            &variation.masked_tokens, {0, 0.99});
  LS_ASSIGN_OR_RETURN(
      const bool trains,
      Read(std::move(table), arguments,
           "longshort-train text-classifier: trains a classifier of documents.\n\n"
           "  longshort-train text-classifier --config=config.json --train=train.jsonl --held-out=held_out.jsonl \\\n"
           "    --out=models/zoo/NAME/1 --steps=5000"));
  if (!trains) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckPaths(files, options));
  LS_RETURN_IF_ERROR(CompleteLoop(options.output_directory, length, options.loop));
  LS_ASSIGN_OR_RETURN(const auto classifier, LoadTrainableTextClassifier(files, variation));
  return TrainClassifier(options, *classifier);
}

absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  RunLength length;
  AugmentationOptions augmentation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the CvT*-LS to train. It is copied unchanged. Required.", &files.config);
  table.Add("train", "DIR",
            "Directory of images to train on: for each class a folder with JPEG, PNG or WebP files. The folders' "
            "sorted names are the classes. Required.",
            &files.train);
  table.Add("held-out", "DIR", "Directory of images to evaluate on, in the same format. Required.", &files.held_out);
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
  LS_ASSIGN_OR_RETURN(
      const bool trains,
      Read(std::move(table), arguments,
           "longshort-train image-classifier: trains a CvT*-LS on labelled images.\n\n"
           "  longshort-train image-classifier --config=config.json --train=train --held-out=held_out \\\n"
           "    --out=models/zoo/NAME/1 --steps=5000"));
  if (!trains) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckPaths(files, options));
  LS_RETURN_IF_ERROR(CompleteLoop(options.output_directory, length, options.loop));
  LS_ASSIGN_OR_RETURN(const auto classifier, LoadTrainableImageClassifier(files, augmentation));
  return TrainClassifier(options, *classifier);
}

}  // namespace longshort::models
