#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/commands.h"
#include "models/train/language_model_trainer.h"

namespace longshort::models {
namespace {

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
  AddInitialWeights(table, options.official_weights);
  table.Add("held-out", "X", "Fraction of the text, at its end, that is held out from training.",
            &options.held_out_fraction, {0.000001, 0.999999});
  table.Add(
      "validation", "X",
      "Fraction of the text, before the held-out part, that --keep-best uses to choose the weights; 0: it uses the "
      "held-out part.",
      &options.validation_fraction, {0, 0.999999});
  AddDropout(table, options.dropout.rows);
  AddBfloat16Products(table, options.bfloat16_products);
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
                      ReadOptions(std::move(table), arguments,
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

}  // namespace longshort::models
