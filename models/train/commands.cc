#include "models/train/commands.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/classifier_trainer.h"
#include "models/train/language_model_trainer.h"
#include "models/train/trainable_classifier.h"

namespace longshort::models {
namespace {

constexpr int64_t kMaxSteps = 1'000'000'000;
constexpr int64_t kMaxInBatch = int64_t{1} << 20;
constexpr int64_t kMaxShards = 1024;

// Reads the options. False if they ask for help, which is printed: `intro`, then the table.
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
  table.Add("checkpoint", "FILE", "Keeps the run's state; if it is there, the run goes on from it.",
            &loop.checkpoint_path);
}

void AddLoop(OptionTable& table, LoopOptions& loop) {
  OptimizerOptions& optimizer = loop.optimizer;
  table.Add("steps", "N", "Optimizer steps of the whole run; decides the learning rate's course.",
            &optimizer.total_steps, {1, kMaxSteps});
  table.Add("stop-after-steps", "N", "Stop at this step, with a checkpoint to go on from; 0 goes to the end.",
            &loop.stop_after_steps, {0, kMaxSteps});
  table.Add("learning-rate", "X", "Peak of the learning rate.", &optimizer.peak_learning_rate, {1e-9, 1000});
  table.Add("warmup-steps", "N", "Steps until the peak.", &optimizer.warmup_steps, {0, kMaxSteps});
  table.Add("weight-decay", "X", "AdamW's decay, on matrices and kernels only.", &optimizer.weight_decay, {0, 1000});
  table.Add("held-out-interval", "N", "Steps between measurements on the held-out data; 0: none.",
            &loop.held_out_interval, {0, kMaxSteps});
  table.Add("checkpoint-interval", "N", "Steps between checkpoints.", &loop.checkpoint_interval, {1, kMaxSteps});
}

void AddBfloat16Products(OptionTable& table, bool& bfloat16_products) {
  table.AddSwitch("bfloat16-products",
                  "Multiply matrices in bfloat16; weights and sums stay float32. Slower on a processor without "
                  "instructions for it.",
                  &bfloat16_products);
}

// What two cores train in hours.
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

// Their ranges are those of a config.json.
void AddModel(OptionTable& table, LanguageModelConfig& config) {
  table.Add("layers", "N", "Layers.", &config.layers);
  table.Add("model-width", "N", "Model width d; even, a multiple of --heads.", &config.model_width);
  table.Add("heads", "N", "Attention heads.", &config.heads);
  table.Add("feed-forward-width", "N", "Width inside the feed-forward part.", &config.feed_forward_width);
  table.Add("chunk-size", "N", "Tokens that one dynamic projection compresses.", &config.chunk_size);
  table.Add("chunk-rank", "N", "Vectors that a chunk is compressed to.", &config.chunk_rank);
  table.Add("window-length", "N", "Tokens that a token sees as they are, itself included.", &config.window_length);
  table.Add("memory-length", "N", "Tokens before the segment that are seen in compressed form.", &config.memory_length);
  table.Add("segment-length", "N", "Tokens of a segment; part of the model, the server uses it too.",
            &config.segment_length);
}

void AddLanguageModelTraining(OptionTable& table, LanguageModelTrainerOptions& options) {
  AddLoop(table, options.loop);
  table.Add("batch", "N", "Parallel streams of text.", &options.batch, {1, kMaxInBatch});
  table.Add("shards", "N", "Threads that share the streams of a step, one core each.", &options.shards,
            {1, kMaxShards});
  table.Add("tokens-per-stream", "N", "Tokens of each stream in a step; gradients reach this far back.",
            &options.tokens_per_stream, {1, kMaxInBatch});
  table.Add("seed", "N", "Decides the initial weights.", &options.seed);
  table.Add("held-out", "X", "Fraction at the end of the text that is never trained on.", &options.held_out_fraction,
            {0.000001, 0.999999});
  AddBfloat16Products(table, options.bfloat16_products);
}

// What is the same in the defaults of both classifiers.
ClassifierTrainerOptions DefaultClassifierOptions() {
  ClassifierTrainerOptions options;
  options.loop.optimizer.peak_learning_rate = 1e-3;
  options.loop.optimizer.weight_decay = 0.05;
  options.loop.optimizer.beta2 = 0.98;  // batches are small
  return options;
}

void AddClassifierTraining(OptionTable& table, ClassifierTrainerOptions& options) {
  AddOutput(table, options.output_directory, options.loop);
  table.BeginSection("Training:");
  AddLoop(table, options.loop);
  table.Add("batch", "N", "Examples of a step.", &options.batch, {1, kMaxInBatch});
  table.Add("group", "N", "Examples that go through the model at once; batch normalisation sees these together.",
            &options.group, {1, kMaxInBatch});
  table.Add("shards", "N", "Threads that share the groups of a step, one core each.", &options.shards, {1, kMaxShards});
  table.Add("seed", "N", "Decides the initial weights, the order of the examples and how they are varied.",
            &options.seed);
  table.Add("label-smoothing", "X", "Part of a target's probability that is spread over all classes.",
            &options.label_smoothing, {0, 0.99});
  table.Add("average-decay", "X",
            "What is measured and written is the running average of the weights, which keeps this part of itself at "
            "each step; 0: the last weights.",
            &options.average_decay, {0, 0.999999});
}

absl::Status CheckPaths(const TrainingFiles& files, const ClassifierTrainerOptions& options) {
  if (!files.config.empty() && !files.train.empty() && !files.held_out.empty() && !options.output_directory.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("--config, --train, --held-out and --out are needed; see --help");
}

}  // namespace

absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments) {
  LanguageModelTrainerOptions options = DefaultLanguageModelOptions();
  std::string text_path;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("text", "FILE", "File to train on, any bytes. Its last part is held out (--held-out). Required.",
            &text_path);
  AddOutput(table, options.output_directory, options.loop);
  table.BeginSection("Model:");
  AddModel(table, options.config);
  table.BeginSection("Training:");
  AddLanguageModelTraining(table, options);
  LS_ASSIGN_OR_RETURN(const bool trains,
                      Read(std::move(table), arguments,
                           "longshort-train language-model: trains a byte language model on one text.\n\n"
                           "  longshort-train language-model --text=enwiki_p10.xml --out=models/zoo/enwiki/1 "
                           "--checkpoint=enwiki.checkpoint \\\n    --steps=5000"));
  if (!trains) return absl::OkStatus();
  if (text_path.empty() || options.output_directory.empty()) {
    return absl::InvalidArgumentError("--text and --out are needed; see --help");
  }
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_path, size_t{1} << 32));
  return TrainLanguageModel(options, text);
}

absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  TextVariationOptions variation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the model to train; it is written as it is. Required.", &files.config);
  table.Add("vocabulary", "FILE", "vocabulary.txt, for the ListOps tokenizers.", &files.vocabulary);
  table.Add("train", "FILE",
            "Labelled documents to train on, one JSON object a line: {\"label\": \"pos\", \"text\": \"...\"}, and "
            "\"second_text\" for models of two documents. The labels, sorted, are the classes. Required.",
            &files.train);
  table.Add("held-out", "FILE", "Labelled documents that are only measured, in the same form. Required.",
            &files.held_out);
  AddClassifierTraining(table, options);
  table.Add("crop-tokens", "N", "Longer documents are trained on in random pieces of this length; 0: whole.",
            &variation.crop_tokens, {0, int64_t{1} << 30});
  table.Add("masked-tokens", "X", "Part of a document's tokens that is masked, other ones each time.",
            &variation.masked_tokens, {0, 0.99});
  LS_ASSIGN_OR_RETURN(
      const bool trains,
      Read(std::move(table), arguments,
           "longshort-train text-classifier: trains a classifier of documents.\n\n"
           "  longshort-train text-classifier --config=config.json --train=train.jsonl --held-out=held_out.jsonl \\\n"
           "    --out=models/zoo/NAME/1 --steps=5000"));
  if (!trains) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckPaths(files, options));
  LS_ASSIGN_OR_RETURN(const auto classifier, LoadTrainableTextClassifier(files, variation));
  return TrainClassifier(options, *classifier);
}

absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments) {
  ClassifierTrainerOptions options = DefaultClassifierOptions();
  TrainingFiles files;
  AugmentationOptions augmentation;
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("config", "FILE", "config.json of the CvT*-LS to train; it is written as it is. Required.", &files.config);
  table.Add("train", "DIR",
            "Images to train on: a folder for each class with JPEG, PNG or WebP files in it. The folders' "
            "names, sorted, are the classes. Required.",
            &files.train);
  table.Add("held-out", "DIR", "Images that are only measured, in the same form. Required.", &files.held_out);
  AddClassifierTraining(table, options);
  table.Add("image-side", "N",
            "Pixels of a side of the images that are trained on; 0: those of the preprocessing's crop. Things look "
            "larger in random rectangles than in whole images, so a smaller side suits the size that is served.",
            &augmentation.side, {0, 65536});
  table.Add("smallest-crop", "X", "Images are trained on in random rectangles of at least this part of their area.",
            &augmentation.smallest_crop, {0.001, 1});
  table.Add("colour-jitter", "X", "Brightness, contrast and saturation change at random by up to this part.",
            &augmentation.colour_jitter, {0, 0.99});
  table.Add("cutmix", "X", "Probability that a rectangle of an image, and of its target, comes from another one.",
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
  LS_ASSIGN_OR_RETURN(const auto classifier, LoadTrainableImageClassifier(files, augmentation));
  return TrainClassifier(options, *classifier);
}

}  // namespace longshort::models
