#include "models/train/commands.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
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

// Parses the options. If --help is given, prints `intro` and the table, and returns false. `others` are the arguments
// that are not options.
absl::StatusOr<bool> Read(OptionTable table, const std::vector<std::string>& arguments, const std::string& intro,
                          std::vector<std::string>& others) {
  bool help = false;
  table.BeginSection("Other:");
  table.AddSwitch("help", "Print this and exit.", &help);
  LS_ASSIGN_OR_RETURN(others, table.ParseAmongOthers(arguments));
  if (help) absl::PrintF("%s\n\n%s", intro, table.Help());
  return !help;
}

void AddOutput(OptionTable& table, std::string& output_directory, LoopOptions& loop) {
  table.Add("out", "DIR", "Model directory to write. By default my_models/NAME/1, where NAME is that of the data.",
            &output_directory);
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

// The options of a classifier's data and form. `data` is the hint and the help of --train.
void AddClassifierFiles(OptionTable& table, TrainingFiles& files, const std::string& hint, const std::string& data) {
  table.Add("train", hint, data + " May be given without --train=. Required.", &files.train);
  table.Add("held-out", hint, "Labelled data to evaluate on, in the same format. By default a part of --train.",
            &files.held_out);
  table.Add("held-out-fraction", "X",
            "Fraction of each class in --train that is held out from training, without --held-out.",
            &files.held_out_fraction, {0.001, 0.9});
  table.AddChoice("size", {{"small", std::string("small")}, {"medium", std::string("medium")}},
                  "Size of the model, without --config and --from. The classes follow from the data.", &files.size);
  table.Add(
      "from", "MODEL",
      "Model directory to begin with, also a converted one. Its form is the model's. If its labels are not those of "
      "the data, its last layer begins with random weights.",
      &files.from);
}

// Accepts the data as the only argument that is not an option, and fills in --out.
absl::Status CompletePaths(const std::vector<std::string>& others, std::string& data, std::string& output_directory) {
  if (others.size() > (data.empty() ? 1 : 0)) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", others.back(), "'; see --help"));
  }
  if (!others.empty()) data = others.front();
  if (data.empty()) return absl::InvalidArgumentError("the data to train on is required; see --help");
  if (!output_directory.empty()) return absl::OkStatus();
  std::string name;
  std::filesystem::path path(data);
  if (!path.has_filename()) path = path.parent_path();
  for (const char character : path.stem().string()) {
    if (absl::ascii_isalnum(character) || character == '_' || character == '-') name.push_back(character);
  }
  if (name.empty()) return absl::InvalidArgumentError("--out is required; see --help");
  output_directory = absl::StrCat("my_models/", name, "/1");
  return absl::OkStatus();
}

// Completes the options of a classifier, loads its data, and trains.
absl::Status CompleteAndTrain(const std::vector<std::string>& others, const RunLength& length,
                              ClassifierTrainerOptions& options, TrainingFiles& files,
                              absl::FunctionRef<absl::StatusOr<std::unique_ptr<TrainableClassifier>>()> load) {
  LS_RETURN_IF_ERROR(CompletePaths(others, files.train, options.output_directory));
  if (!files.config.empty() && !files.from.empty()) {
    return absl::InvalidArgumentError("--config and --from exclude each other: the form is that of --from");
  }
  // A smaller batch alone is no mistake.
  if (options.group == ClassifierTrainerOptions().group) options.group = std::min(options.group, options.batch);
  LS_RETURN_IF_ERROR(CompleteLoop(options.output_directory, length, options.loop));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TrainableClassifier> classifier, load());
  return TrainClassifier(options, *classifier);
}

}  // namespace

absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments) {
  LanguageModelTrainerOptions options = DefaultLanguageModelOptions();
  std::string text_path;
  RunLength length;
  std::vector<std::string> others;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("text", "FILE",
            "File of any bytes to train on. Its last part is held out (--held-out). May be given without --text=. "
            "Required.",
            &text_path);
  table.Add("from", "MODEL",
            "Directory of a language model of bytes to begin with, also a converted one. Its form is the model's.",
            &options.from);
  AddOutput(table, options.output_directory, options.loop);
  table.BeginSection("Model:");
  AddModel(table, options.config);
  table.BeginSection("Training:");
  AddLanguageModelTraining(table, options, length);
  LS_ASSIGN_OR_RETURN(const bool trains,
                      Read(std::move(table), arguments,
                           "longshort-train language-model: trains a byte language model on one text.\n\n"
                           "  longshort-train language-model my.txt --out=my_models/mine/1 --time=10m",
                           others));
  if (!trains) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CompletePaths(others, text_path, options.output_directory));
  if (!options.from.empty() && options.config != DefaultLanguageModelOptions().config) {
    return absl::InvalidArgumentError(
        "--from has the model's form: --layers, --model-width, ... are not allowed with it");
  }
  LS_RETURN_IF_ERROR(CompleteLoop(options.output_directory, length, options.loop));
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_path, size_t{1} << 32));
  return TrainLanguageModel(options, text);
}

absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  RunLength length;
  std::vector<std::string> others;
  TextVariationOptions variation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the model to train. It is copied unchanged.", &files.config);
  table.Add("vocabulary", "FILE", "vocabulary.txt, for the ListOps tokenizers.", &files.vocabulary);
  AddClassifierFiles(
      table, files, "DATA",
      "Labelled texts to train on: a folder with a folder of files for each class, a .csv or .tsv file with "
      "the columns label and text, or JSON Lines like {\"label\": \"pos\", \"text\": \"...\"}. With "
      "--config only JSON Lines, and \"second_text\" for models of two documents. The sorted labels are "
      "the classes.");
  table.Add("text-column", "NAME", "Column or field of the texts.", &files.columns.text);
  table.Add("label-column", "NAME", "Column or field of the labels.", &files.columns.label);
  AddClassifierTraining(table, options, length);
  table.Add("crop-tokens", "N", "Length of the random piece to which a longer document is cut each time; 0: no cut.",
            &variation.crop_tokens, {0, int64_t{1} << 30});
  table.Add("masked-tokens", "X", "Fraction of a document's tokens to mask, chosen at random each time.",
            &variation.masked_tokens, {0, 0.99});
  LS_ASSIGN_OR_RETURN(
      const bool trains,
      Read(std::move(table), arguments,
           "longshort-train text-classifier: trains a classifier of documents.\n\n"
           "  longshort-train text-classifier reviews.csv --text-column=review --out=my_models/reviews/1 --time=10m",
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
                      Read(std::move(table), arguments,
                           "longshort-train image-classifier: trains a CvT*-LS on labelled images.\n\n"
                           "  longshort-train image-classifier photos --out=my_models/photos/1 --time=1h",
                           others));
  if (!trains) return absl::OkStatus();
  return CompleteAndTrain(others, length, options, files,
                          [&] { return LoadTrainableImageClassifier(files, augmentation); });
}

}  // namespace longshort::models
