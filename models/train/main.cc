// longshort-train: trains a byte language model on one text and writes a model directory that longshort-server serves.

#include <cstdio>
#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "absl/strings/str_format.h"
#include "command_line/option_table.h"
#include "longshort_version.h"
#include "models/status_macros.h"
#include "models/train/language_model_trainer.h"
#include "models/weights/mapped_file.h"

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
  bool version = false;
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
  OptimizerOptions& optimizer = options.loop.optimizer;
  table.Add("steps", "N", "Optimizer steps of the whole run; decides the learning rate's course.",
            &optimizer.total_steps);
  table.Add("stop-after-steps", "N", "Stop at this step, with a checkpoint to go on from; 0 goes to the end.",
            &options.loop.stop_after_steps);
  table.Add("batch", "N", "Parallel streams of text.", &options.batch);
  table.Add("shards", "N", "Threads that share the streams of a step, one core each.", &options.shards);
  table.Add("tokens-per-stream", "N", "Tokens of each stream in a step; gradients reach this far back.",
            &options.tokens_per_stream);
  table.Add("learning-rate", "X", "Peak of the learning rate.", &optimizer.peak_learning_rate);
  table.Add("warmup-steps", "N", "Steps until the peak.", &optimizer.warmup_steps);
  table.Add("weight-decay", "X", "AdamW's decay, on matrices only.", &optimizer.weight_decay);
  table.Add("seed", "N", "Decides the initial weights.", &options.seed);
  table.Add("held-out", "X", "Fraction at the end of the text that is never trained on.", &options.held_out_fraction);
  table.Add("held-out-interval", "N", "Steps between measurements on the held-out text.", &options.loop.held_out_interval);
  table.Add("checkpoint-interval", "N", "Steps between checkpoints.", &options.loop.checkpoint_interval);
  table.AddSwitch("bfloat16-products", "Multiply matrices in bfloat16; weights and sums stay float32.",
                  &options.bfloat16_products);
}

OptionTable MakeTable(CommandLine& line) {
  OptionTable table;
  table.BeginSection("Files (--name=value or --name value):");
  table.Add("text", "FILE", "File to train on, any bytes. Its last part is held out (--held-out). Required.",
            &line.text_path);
  table.Add("out", "DIR", "Model directory to write, for example models/zoo/NAME/1. Required.",
            &line.trainer.output_directory);
  table.Add("checkpoint", "FILE", "Keeps the run's state; if it is there, the run goes on from it.",
            &line.trainer.loop.checkpoint_path);
  table.BeginSection("Model:");
  AddModel(table, line.trainer.config);
  table.BeginSection("Training:");
  AddTraining(table, line.trainer);
  table.BeginSection("Other:");
  table.AddSwitch("help", "Print this and exit.", &line.help);
  table.AddSwitch("version", "Print the version and exit.", &line.version);
  return table;
}

absl::Status Run(const std::vector<std::string>& arguments) {
  CommandLine line;
  const OptionTable table = MakeTable(line);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (line.help) {
    absl::PrintF(
        "longshort-train: trains a byte language model on one text.\n\n"
        "  longshort-train --text=enwiki_p10.xml --out=models/zoo/enwiki/1 --checkpoint=enwiki.checkpoint --steps=5000"
        "\n\n%s",
        table.Help());
    return absl::OkStatus();
  }
  if (line.version) {
    absl::PrintF("longshort-train %s\n", std::string(kVersion));
    return absl::OkStatus();
  }
  if (line.text_path.empty() || line.trainer.output_directory.empty()) {
    return absl::InvalidArgumentError("--text and --out are needed; see --help");
  }
  at::set_num_threads(1);  // a shard is one thread
  LS_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(line.text_path, size_t{1} << 32));
  return TrainLanguageModel(line.trainer, text);
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const absl::Status status = longshort::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "longshort-train: %s\n", std::string(status.message()));
  return 1;
}
