#include "models/train/commands.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/train/model_writer.h"

namespace longshort::models {
namespace {

// The checkpoint beside the model directory.
std::string DefaultCheckpoint(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  return directory + ".checkpoint";
}

}  // namespace

absl::StatusOr<bool> ReadOptions(OptionTable table, const std::vector<std::string>& arguments, const std::string& intro,
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

absl::Status CompleteLoop(const std::string& output_directory, const RunLength& length, LoopOptions& loop) {
  if (loop.optimizer.schedule == Schedule::kOneCycle) UseOneCycle(loop.optimizer);
  if (loop.keep_best && loop.held_out_interval == 0) {
    return absl::InvalidArgumentError("--keep-best needs evaluations on the held-out data; --held-out-interval is 0");
  }
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
  table.AddChoice("schedule", {{"cosine", Schedule::kCosine}, {"one-cycle", Schedule::kOneCycle}},
                  "Course of the learning rate. one-cycle is that of Long Range Arena's official training, with its "
                  "beta1, beta2 0.999, epsilon 1e-6, decay of all weights and no clipping of gradients.",
                  &optimizer.schedule);
  table.Add("learning-rate", "X", "Peak learning rate.", &optimizer.peak_learning_rate, {1e-9, 1000});
  table.Add("warmup-steps", "N", "Steps in which the learning rate rises to its peak.", &optimizer.warmup_steps,
            {0, kMaxSteps});
  table.Add("weight-decay", "X",
            "AdamW's weight decay. It applies to matrices and kernels, with --schedule=one-cycle to all weights.",
            &optimizer.weight_decay, {0, 1000});
  table.Add("held-out-interval", "N", "Steps between evaluations on the held-out data; 0: none.",
            &loop.held_out_interval, {0, kMaxSteps});
  table.AddSwitch(
      "keep-best",
      "Write the weights with the best evaluation on the validation part, or else on the held-out data, not the "
      "last ones.",
      &loop.keep_best);
  table.Add("checkpoint-interval", "N", "Steps between checkpoints.", &loop.checkpoint_interval, {1, kMaxSteps});
}

void AddInitialWeights(OptionTable& table, bool& official_weights) {
  table.AddChoice("initial-weights", {{"scaled", false}, {"official", true}},
                  "Distribution of random initial weights. scaled: normal, with one over the square root of a map's "
                  "inputs. official: that of the architecture's official code.",
                  &official_weights);
}

void AddDropout(OptionTable& table, double& rate) {
  table.Add("dropout", "X",
            "Probability with which training drops a number of the embedding, and of the results of attention and of "
            "the feed-forward part's two maps.",
            &rate, {0, 0.99});
}

void AddBfloat16Products(OptionTable& table, bool& bfloat16_products) {
  table.AddSwitch("bfloat16-products",
                  "Multiply matrices in bfloat16. Weights and sums stay float32. This is slower on a processor without "
                  "bfloat16 instructions.",
                  &bfloat16_products);
}

absl::Status CompletePaths(const std::vector<std::string>& others, std::string& data, std::string& output_directory) {
  if (others.size() > (data.empty() ? 1 : 0)) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", others.back(), "'; see --help"));
  }
  if (!others.empty()) data = others.front();
  if (data.empty()) {
    return absl::InvalidArgumentError("no data to train on: name a file or folder, as the examples of --help do");
  }
  // Checked before the folder of --out is made.
  if (std::error_code unknown; !std::filesystem::exists(data, unknown)) {
    return absl::NotFoundError(absl::StrCat(data, ": there is no such file or folder to train on"));
  }
  if (!output_directory.empty()) return absl::OkStatus();
  std::string name;
  std::filesystem::path path(data);
  if (!path.has_filename()) path = path.parent_path();
  for (const char character : path.stem().string()) {
    if (absl::ascii_isalnum(character) || character == '_' || character == '-') name.push_back(character);
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out is required: the name of ", data, " gives no name to the model"));
  }
  output_directory = absl::StrCat("my_models/", name, "/1");
  return absl::OkStatus();
}

}  // namespace longshort::models
