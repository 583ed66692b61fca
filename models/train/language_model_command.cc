#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/train/commands.h"
#include "models/train/language_model_trainer.h"
#include "models/train/training_options.h"

namespace longshort {
namespace {

// What two cores train in hours.
LanguageModelTrainerOptions DefaultOptions() {
  LanguageModelTrainerOptions options;
  options.config = {.layers = 5,
                    .model_width = 192,
                    .heads = 6,
                    .feed_forward_width = 768,
                    .window_length = 128,
                    .memory_length = 1024};
  options.shards = 2;
  return options;
}

struct CommandLine {
  LanguageModelTrainerOptions trainer = DefaultOptions();
  std::string text_path;
  bool help = false;
};

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

void AddTraining(OptionTable& table, LanguageModelTrainerOptions& options) {
  AddLoopOptions(table, options.loop);
  table.Add("batch", "N", "Parallel streams of text.", &options.batch);
  table.Add("shards", "N", "Threads that share the streams of a step, one core each.", &options.shards);
  table.Add("tokens-per-stream", "N", "Tokens of each stream in a step; gradients reach this far back.",
            &options.tokens_per_stream);
  table.Add("seed", "N", "Decides the initial weights.", &options.seed);
  table.Add("held-out", "X", "Fraction at the end of the text that is never trained on.", &options.held_out_fraction);
  table.AddSwitch("bfloat16-products",
                  "Multiply matrices in bfloat16; weights and sums stay float32. Slower on a processor without "
                  "instructions for it.",
                  &options.bfloat16_products);
}

OptionTable MakeTable(CommandLine& line) {
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("text", "FILE", "File to train on, any bytes. Its last part is held out (--held-out). Required.",
            &line.text_path);
  AddOutputOptions(table, line.trainer.output_directory, line.trainer.loop);
  table.BeginSection("Model:");
  AddModel(table, line.trainer.config);
  table.BeginSection("Training:");
  AddTraining(table, line.trainer);
  AddHelpOption(table, line.help);
  return table;
}

}  // namespace

absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments) {
  CommandLine line;
  const OptionTable table = MakeTable(line);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (line.help) {
    absl::PrintF(
        "longshort-train language-model: trains a byte language model on one text.\n\n"
        "  longshort-train language-model --text=enwiki_p10.xml --out=models/zoo/enwiki/1 "
        "--checkpoint=enwiki.checkpoint \\\n    --steps=5000\n\n%s",
        table.Help());
    return absl::OkStatus();
  }
  if (line.text_path.empty() || line.trainer.output_directory.empty()) {
    return absl::InvalidArgumentError("--text and --out are needed; see --help");
  }
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.text_path, size_t{1} << 32));
  return TrainLanguageModel(line.trainer, text);
}

}  // namespace longshort
