// longshort-train: trains a byte language model on one text and writes a model directory that longshort-server serves.

#include <cstdio>
#include <string>

#include "ATen/Parallel.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_format.h"
#include "models/train/trainer.h"
#include "models/weights/mapped_file.h"

ABSL_FLAG(std::string, text, "", "File to train on, any bytes. Its last part is held out (--held-out).");
ABSL_FLAG(std::string, out, "", "Model directory to write, for example models/zoo/NAME/1.");
ABSL_FLAG(std::string, checkpoint, "", "File that keeps the run's state; if it is there, the run goes on from it.");

ABSL_FLAG(int64_t, layers, 5, "Layers.");
ABSL_FLAG(int64_t, model_width, 192, "Model width d; even, a multiple of --heads.");
ABSL_FLAG(int64_t, heads, 6, "Attention heads.");
ABSL_FLAG(int64_t, feed_forward_width, 768, "Width inside the feed-forward part.");
ABSL_FLAG(int64_t, chunk_size, 16, "Tokens that one dynamic projection compresses.");
ABSL_FLAG(int64_t, chunk_rank, 1, "Vectors that a chunk is compressed to.");
ABSL_FLAG(int64_t, window_length, 128, "Tokens that a token sees as they are, itself included.");
ABSL_FLAG(int64_t, memory_length, 1024, "Tokens before the segment that are seen in compressed form.");
ABSL_FLAG(int64_t, segment_length, 256, "Tokens of a segment; part of the model, the server uses it too.");

ABSL_FLAG(int64_t, steps, 1000, "Optimizer steps of the whole run; decides the learning rate's course.");
ABSL_FLAG(int64_t, stop_after_steps, 0, "Stop at this step, with a checkpoint to go on from; 0 goes to the end.");
ABSL_FLAG(int64_t, batch, 8, "Parallel streams of text.");
ABSL_FLAG(int64_t, tokens_per_stream, 512, "Tokens of each stream in a step; gradients reach this far back.");
ABSL_FLAG(double, learning_rate, 2e-3, "Peak of the learning rate.");
ABSL_FLAG(int64_t, warmup_steps, 100, "Steps until the peak.");
ABSL_FLAG(double, weight_decay, 0.1, "AdamW's decay, on matrices only.");
ABSL_FLAG(uint64_t, seed, 1, "Decides the initial weights.");
ABSL_FLAG(double, held_out, 0.05, "Fraction at the end of the text that is never trained on.");
ABSL_FLAG(int64_t, held_out_interval, 500, "Steps between measurements on the held-out text.");
ABSL_FLAG(int64_t, checkpoint_interval, 100, "Steps between checkpoints.");
ABSL_FLAG(bool, bfloat16_products, false, "Multiply matrices in bfloat16; weights and sums stay float32.");
ABSL_FLAG(int64_t, shards, 2, "Threads that share the streams of a step, one core each.");

namespace longshort {
namespace {

TrainerOptions OptionsFromFlags() {
  TrainerOptions options;
  options.config.layers = absl::GetFlag(FLAGS_layers);
  options.config.model_width = absl::GetFlag(FLAGS_model_width);
  options.config.heads = absl::GetFlag(FLAGS_heads);
  options.config.feed_forward_width = absl::GetFlag(FLAGS_feed_forward_width);
  options.config.chunk_size = absl::GetFlag(FLAGS_chunk_size);
  options.config.chunk_rank = absl::GetFlag(FLAGS_chunk_rank);
  options.config.window_length = absl::GetFlag(FLAGS_window_length);
  options.config.memory_length = absl::GetFlag(FLAGS_memory_length);
  options.config.segment_length = absl::GetFlag(FLAGS_segment_length);
  options.optimizer.total_steps = absl::GetFlag(FLAGS_steps);
  options.optimizer.peak_learning_rate = absl::GetFlag(FLAGS_learning_rate);
  options.optimizer.warmup_steps = absl::GetFlag(FLAGS_warmup_steps);
  options.optimizer.weight_decay = absl::GetFlag(FLAGS_weight_decay);
  options.batch = absl::GetFlag(FLAGS_batch);
  options.tokens_per_stream = absl::GetFlag(FLAGS_tokens_per_stream);
  options.shards = absl::GetFlag(FLAGS_shards);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.held_out_fraction = absl::GetFlag(FLAGS_held_out);
  options.held_out_interval = absl::GetFlag(FLAGS_held_out_interval);
  options.checkpoint_interval = absl::GetFlag(FLAGS_checkpoint_interval);
  options.bfloat16_products = absl::GetFlag(FLAGS_bfloat16_products);
  options.stop_after_steps = absl::GetFlag(FLAGS_stop_after_steps);
  options.checkpoint_path = absl::GetFlag(FLAGS_checkpoint);
  options.output_directory = absl::GetFlag(FLAGS_out);
  return options;
}

int Main() {
  if (absl::GetFlag(FLAGS_text).empty() || absl::GetFlag(FLAGS_out).empty()) {
    absl::FPrintF(stderr, "longshort-train: --text and --out are needed; see --help\n");
    return 1;
  }
  at::set_num_threads(1);  // a shard is one thread
  const absl::StatusOr<std::string> text = ReadTextFile(absl::GetFlag(FLAGS_text), size_t{1} << 32);
  const absl::Status trained = text.ok() ? Train(OptionsFromFlags(), *text) : text.status();
  if (trained.ok()) return 0;
  absl::FPrintF(stderr, "longshort-train: %s\n", trained.ToString());
  return 1;
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Trains a byte language model on one text.\n"
      "Example: longshort-train --text=enwiki_p10.xml --out=models/zoo/enwiki/1 --checkpoint=enwiki.checkpoint "
      "--steps=5000");
  absl::ParseCommandLine(argc, argv);
  return longshort::Main();
}
