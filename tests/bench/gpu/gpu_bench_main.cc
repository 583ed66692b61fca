// longshort-gpu-bench: one measurement on a device, as one JSON object. tests/bench/gpu/run knows the cases.

#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "models/device/library.h"
#include "models/families/family.h"
#include "tests/bench/gpu/classifier_times.h"
#include "tests/bench/gpu/peaks.h"
#include "tests/bench/gpu/stream_times.h"
#include "tests/bench/random_model.h"

namespace longshort {
namespace {

constexpr char kCommands[] = R"(Usage: longshort-gpu-bench COMMAND [options]

  write       write a model directory with weights by formula: --config, --model
  peaks       measure the device's peak rates: --side, --copied-bytes, --seconds
  streams     measure a language model's steps: --model, --precision, --streams, ...
  classifier  measure a classifier's batches: --model, --items, --tokens, --runs

)";

struct Options {
  std::string device = "cuda:0", config;
  PeakSizes peaks;
  StreamWork streams;
  ClassifierWork classifier;
  std::string model;
  int64_t threads = 0;
  bool in_turns = false, help = false;
};

void AddOptions(OptionTable& table, Options& options) {
  table.Add("device", "DEVICE", "cpu, emulated:N or cuda:N.", &options.device);
  table.Add("model", "DIR", "A model directory.", &options.model);
  table.Add("config", "NAME", "Of what is written: a preset, or a file with a config.json.", &options.config);
  table.Add("side", "N", "Of the matrices.", &options.peaks.side);
  table.Add("copied-bytes", "N", "Of the copy.", &options.peaks.copied_bytes);
  table.Add("seconds", "X", "Of each measurement of peaks.", &options.peaks.seconds);
  table.Add("threads", "N", "Of the CPU; 0: one per core.", &options.threads, {0, 1024});
  table.Add("precision", "NAME", "fp32, bf16 or int8. With fp32, peaks does not measure bf16.",
            &options.streams.precision);
  table.Add("streams", "N", "Streams of a step.", &options.streams.streams);
  table.Add("step-tokens", "N", "Tokens of each stream in a step.", &options.streams.step_tokens);
  table.Add("prompt-tokens", "N", "Tokens of one more stream's prompt in a step.", &options.streams.prompt_tokens);
  table.Add("steps", "N", "Steps that are measured.", &options.streams.steps);
  table.Add("warm-up-steps", "N", "Steps before them.", &options.streams.warm_up_steps);
  table.Add("read-before", "N", "Tokens that a stream has read; -1 fills its memory.", &options.streams.read_before);
  table.Add("items", "N", "Items of a batch.", &options.classifier.items);
  table.Add("tokens", "N", "Tokens of a document; 0: as many as the model takes.", &options.classifier.tokens);
  table.Add("runs", "N", "Batches that are measured.", &options.classifier.runs);
  table.Add("run-seconds", "X",
            "More runs of a classifier, until they have taken this long, and a quarter of it before.",
            &options.classifier.seconds);
  table.Add("warm-up-runs", "N", "Batches before them.", &options.classifier.warm_up_runs);
  table.AddSwitch("in-turns",
                  "Of classifier and peaks: write \"ready\", then for each line of standard input the seconds of one "
                  "batch, or of one product.",
                  &options.in_turns);
  table.AddSwitch("help", "Print this and exit.", &options.help);
}

absl::Status Write(const Options& options) {
  std::string config(models::FindPreset(options.config));
  if (config.empty()) {
    std::ifstream file(options.config);
    config.assign((std::istreambuf_iterator<char>(file)), {});
  }
  if (config.empty()) {
    return absl::NotFoundError(
        absl::StrCat("--config is '", options.config, "', which is neither a preset nor a file"));
  }
  std::filesystem::create_directories(options.model);
  return WriteRandomModel(config, options.model);
}

absl::StatusOr<nlohmann::json> Measure(const std::string& command, Options& options) {
  LS_ASSIGN_OR_RETURN(GoldenDevice device, FindGoldenDevice(options.device));
  device.devices.front().threads = static_cast<int>(options.threads);
  if (command == "peaks") {
    options.peaks.bfloat16 = options.streams.precision != "fp32";
    if (options.in_turns) {
      LS_RETURN_IF_ERROR(MeasureProductInTurns(device, options.peaks));
      return nlohmann::json::object();
    }
    return MeasurePeaks(device, options.peaks);
  }
  if (command == "streams") {
    options.streams.model = options.model;
    return MeasureStreams(options.streams, device);
  }
  if (command == "classifier") {
    options.classifier.model = options.model;
    options.classifier.precision = options.streams.precision;
    options.classifier.in_turns = options.in_turns;
    return MeasureClassifier(options.classifier, device);
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no command '", command, "'; --help lists them"));
}

absl::Status Main(const std::vector<std::string>& arguments) {
  Options options;
  OptionTable table;
  AddOptions(table, options);
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> commands, table.ParseAmongOthers(arguments));
  if (options.help || commands.size() != 1) {
    std::cout << kCommands << table.Help();
    return options.help ? absl::OkStatus() : absl::InvalidArgumentError("one command is needed");
  }
  if (commands.front() == "write") return Write(options);
  try {
    LS_ASSIGN_OR_RETURN(const nlohmann::json found, Measure(commands.front(), options));
    std::cout << found.dump() << std::endl;
  } catch (const std::exception& error) {
    return models::LibraryError("while measuring", error);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const absl::Status status = longshort::Main({argv + 1, argv + argc});
  if (!status.ok()) std::cerr << "longshort-gpu-bench: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
