#include "models/train/training_options.h"

namespace longshort {

void AddOutputOptions(OptionTable& table, std::string& output_directory, LoopOptions& loop) {
  table.Add("out", "DIR", "Model directory to write, for example models/zoo/NAME/1. Required.", &output_directory);
  table.Add("checkpoint", "FILE", "Keeps the run's state; if it is there, the run goes on from it.",
            &loop.checkpoint_path);
}

void AddLoopOptions(OptionTable& table, LoopOptions& loop) {
  OptimizerOptions& optimizer = loop.optimizer;
  table.Add("steps", "N", "Optimizer steps of the whole run; decides the learning rate's course.",
            &optimizer.total_steps);
  table.Add("stop-after-steps", "N", "Stop at this step, with a checkpoint to go on from; 0 goes to the end.",
            &loop.stop_after_steps);
  table.Add("learning-rate", "X", "Peak of the learning rate.", &optimizer.peak_learning_rate);
  table.Add("warmup-steps", "N", "Steps until the peak.", &optimizer.warmup_steps);
  table.Add("weight-decay", "X", "AdamW's decay, on matrices and kernels only.", &optimizer.weight_decay);
  table.Add("held-out-interval", "N", "Steps between measurements on the held-out data; 0: none.",
            &loop.held_out_interval);
  table.Add("checkpoint-interval", "N", "Steps between checkpoints.", &loop.checkpoint_interval);
}

void AddClassifierOptions(OptionTable& table, ClassifierTrainerOptions& options) {
  table.Add("batch", "N", "Examples of a step.", &options.batch);
  table.Add("group", "N", "Examples that go through the model at once; batch normalisation sees these together.",
            &options.group);
  table.Add("shards", "N", "Threads that share the groups of a step, one core each.", &options.shards);
  table.Add("seed", "N", "Decides the initial weights, the order of the examples and how they are varied.",
            &options.seed);
  table.Add("label-smoothing", "X", "Part of a target's probability that is spread over all classes.",
            &options.label_smoothing);
  table.Add("average-decay", "X",
            "What is measured and written is the running average of the weights, which keeps this part of itself at "
            "each step; 0: the last weights.",
            &options.average_decay);
}

void AddHelpOption(OptionTable& table, bool& help) {
  table.BeginSection("Other:");
  table.AddSwitch("help", "Print this and exit.", &help);
}

ClassifierTrainerOptions DefaultClassifierOptions() {
  ClassifierTrainerOptions options;
  options.loop.optimizer.peak_learning_rate = 1e-3;
  options.loop.optimizer.weight_decay = 0.05;
  options.loop.optimizer.beta2 = 0.98;  // batches are small
  return options;
}

absl::Status CheckClassifierPaths(const std::string& config, const std::string& train, const std::string& held_out,
                                  const std::string& output_directory) {
  if (!config.empty() && !train.empty() && !held_out.empty() && !output_directory.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--config, --train, --held-out and --out are needed; see --help");
}

}  // namespace longshort
