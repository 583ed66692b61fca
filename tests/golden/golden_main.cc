// longshort-golden: runs one file of a golden case through the served language model, whole and in pieces.
//
// Prints one JSON object a line for each way of cutting: {"mode": ..., "largest_difference": ..., "rows": ...}. The
// difference is of log-probabilities, null if the model returned no number; rows counts the positions compared. Whether
// that is good enough is for the caller to say (tests/golden/run): the exit code is 0 whenever the model ran.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "models/families/language_model/transformer_ls.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"
#include "tests/golden/golden_streams.h"
#include "tests/golden/slicing.h"
#include "tests/golden/stream_runner.h"

ABSL_FLAG(std::string, model, "", "Model directory: config.json and model.safetensors");
ABSL_FLAG(std::string, file, "", "The case's io*.safetensors");
ABSL_FLAG(std::vector<std::string>, segments, {}, "Lengths of the file's segments in tokens, comma-separated");
ABSL_FLAG(std::string, device, "cpu", "Where the model runs: cpu, emulated:N or cuda:N");
ABSL_FLAG(std::string, precision, "fp32", "fp32 or bf16");
ABSL_FLAG(int32_t, threads, 0, "Threads of the model; 0: all that the machine gives");
ABSL_FLAG(int32_t, random_cuts, 3, "How many ways each stream is cut at random, side by side in the same steps");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the random cuts and of the order of pages");

namespace longshort {
namespace {

absl::StatusOr<std::vector<int64_t>> SegmentLengths() {
  std::vector<int64_t> lengths;
  for (const std::string& text : absl::GetFlag(FLAGS_segments)) {
    int64_t length = 0;
    if (!absl::SimpleAtoi(text, &length) || length < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--segments: \"", text, "\" is not a length in tokens"));
    }
    lengths.push_back(length);
  }
  if (lengths.empty()) return absl::InvalidArgumentError("--segments is empty");
  return lengths;
}

// Whether the segments end where the model ends them by itself: every L tokens. Only then may a slice cross an end.
bool EndsEveryL(const GoldenStream& stream, int64_t segment_length) {
  for (size_t index = 0; index < stream.segment_starts.size(); ++index) {
    if (stream.segment_starts[index] != static_cast<int64_t>(index) * segment_length) return false;
  }
  return stream.segment_starts.size() > 1 && stream.length() - stream.segment_starts.back() <= segment_length;
}

// Every stream `copies` times, each cut at random on its own.
std::vector<CutStream> CutAtRandom(const std::vector<GoldenStream>& streams, int64_t copies, SegmentEnds segment_ends,
                                   int64_t long_slice, std::mt19937_64& random) {
  std::vector<CutStream> cut;
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (const GoldenStream& stream : streams) {
      cut.push_back({&stream, RandomCuts(stream, segment_ends, long_slice, random)});
    }
  }
  return cut;
}

// A way of cutting, and all streams cut like that.
struct Mode {
  std::string name;
  std::vector<CutStream> streams;
};

// Runs the streams and prints the line of this mode.
absl::Status RunMode(const Mode& mode, models::LanguageModel& model) {
  LS_ASSIGN_OR_RETURN(const Comparison comparison, RunStreams(model, mode.streams, absl::GetFlag(FLAGS_seed)));
  const nlohmann::json line = {{"mode", mode.name},
                               {"largest_difference", comparison.largest_difference},
                               {"rows", comparison.rows},
                               {"replayed_steps", comparison.replayed_steps}};
  std::cout << line.dump() << std::endl;
  return absl::OkStatus();
}

absl::Status RunFile(models::LanguageModel& model) {
  LS_ASSIGN_OR_RETURN(const std::vector<int64_t> segments, SegmentLengths());
  LS_ASSIGN_OR_RETURN(const std::vector<GoldenStream> streams,
                      ReadGoldenStreams(absl::GetFlag(FLAGS_file), segments, model.info()));
  const models::LanguageModelInfo& info = model.info();
  std::vector<Mode> modes = {{"whole segments", {}}, {"token by token", {}}};
  for (const GoldenStream& stream : streams) {
    modes[0].streams.push_back({&stream, WholeSegments(stream)});
    modes[1].streams.push_back({&stream, TokenByToken(stream)});
  }
  std::mt19937_64 random(absl::GetFlag(FLAGS_seed));
  const int64_t copies = std::max(absl::GetFlag(FLAGS_random_cuts), 1);
  const int64_t long_slice = std::max(info.window_length, info.chunk_size);
  modes.push_back({"random cuts", CutAtRandom(streams, copies, SegmentEnds::kKept, long_slice, random)});
  if (EndsEveryL(streams.front(), info.segment_length)) {
    modes.push_back(
        {"across segment ends", CutAtRandom(streams, copies, SegmentEnds::kCrossed, 2 * long_slice, random)});
  }
  // One cache for all: what a mode leaves on the pages must not matter to the next.
  models::CachePages pages;
  for (const Mode& mode : modes) pages = core::Larger(pages, PagesForStreams(model, mode.streams));
  LS_RETURN_IF_ERROR(model.AllocateCache(pages));
  for (const Mode& mode : modes) LS_RETURN_IF_ERROR(RunMode(mode, model));
  return absl::OkStatus();
}

absl::Status Run() {
  models::LoadOptions options;
  options.precision = absl::GetFlag(FLAGS_precision);
  options.threads = absl::GetFlag(FLAGS_threads);
  LS_ASSIGN_OR_RETURN(const GoldenDevice device, FindGoldenDevice(absl::GetFlag(FLAGS_device)));
  options.devices = device.devices;
  options.gpus = device.gpus;
  LS_ASSIGN_OR_RETURN(const models::LanguageModelWeights weights,
                      models::LoadLanguageModel(absl::GetFlag(FLAGS_model), options));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::LanguageModel> model,
                      weights.NewReplica(options.DevicesOrCpu().front()));
  return RunFile(*model);
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Runs one file of a golden case: --model=DIR --file=FILE --segments=8,16,13");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = longshort::Run();
  if (!status.ok()) std::cerr << "longshort-golden: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
