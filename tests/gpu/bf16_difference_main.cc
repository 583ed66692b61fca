// longshort-bf16-difference: what bfloat16 changes of a text's score on a device. Reads the text by the same model in
// float32 and in bfloat16, and prints one JSON object:
//   {"tokens": ..., "fp32_bits_per_token": ..., "bf16_bits_per_token": ..., "same_likeliest_token": share, ...}
// Whether that is good enough is for the caller to say (tests/gpu/bf16.py).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "command_line/option_table.h"
#include "core/cache/cache_pages.h"
#include "models/language_model/loading/language_model.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"
#include "tests/rings/ring_pages.h"

namespace longshort {
namespace {

// Of a text whose first token nothing comes before.
struct Reading {
  double bits = 0;                 // of the tokens behind the first
  std::vector<int64_t> likeliest;  // before each of them
  absl::Duration took;
};

// Adds a row's: the token that came, and the likeliest one.
void AddRow(absl::Span<const float> logits, int32_t token, Reading& reading) {
  const auto* const largest = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *largest);
  reading.bits += (std::log(sum) - (static_cast<double>(logits[token]) - *largest)) / std::log(2.0);
  reading.likeliest.push_back(largest - logits.begin());
}

absl::StatusOr<Reading> Read(LanguageModel& model, absl::Span<const int32_t> tokens, int64_t piece) {
  const LanguageModelInfo& info = model.info();
  const CachePages needed = PagesForRings(info, piece);
  LS_RETURN_IF_ERROR(model.AllocateCache(needed));
  RingPools pools(needed);
  LS_ASSIGN_OR_RETURN(RingPages pages, RingPages::Acquire(pools, info, piece));
  Reading reading;
  const auto count = static_cast<int64_t>(tokens.size());
  const absl::Time begin = absl::Now();
  for (int64_t position = 0; position < count; position += piece) {
    Slice slice;
    slice.tokens = tokens.subspan(position, piece);
    slice.position = position;
    slice.segment_start = position / info.segment_length * info.segment_length;
    slice.logit_rows = static_cast<int64_t>(slice.tokens.size());
    pages.FillIn(slice);
    LS_ASSIGN_OR_RETURN(const StepResult result, model.Step({slice}));
    for (int64_t row = 0; row < slice.logit_rows && position + row + 1 < count; ++row) {
      AddRow(result.logits.subspan(row * info.vocabulary_size, info.vocabulary_size), tokens[position + row + 1],
             reading);
    }
  }
  reading.took = absl::Now() - begin;
  return reading;
}

absl::Status Main(const std::vector<std::string>& arguments) {
  std::string directory, text_file, device_name = "cpu";
  int64_t most_bytes = 1 << 20, piece = 256;
  bool help = false;
  OptionTable table;
  table.Add("model", "DIR", "Directory of a language model of bytes.", &directory);
  table.Add("text", "FILE", "What it reads.", &text_file);
  table.Add("most-bytes", "N", "Of the text, from its beginning.", &most_bytes);
  table.Add("device", "DEVICE", "cpu, emulated:N or cuda:N.", &device_name);
  table.Add("piece", "N", "Tokens of a step.", &piece);
  table.AddSwitch("help", "Print this and exit.", &help);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (help) {
    std::cout << table.Help();
    return absl::OkStatus();
  }
  LS_ASSIGN_OR_RETURN(const GoldenDevice device, FindGoldenDevice(device_name));
  LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(opened));
  std::ifstream file(text_file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.resize(std::min<size_t>(text.size(), most_bytes));
  if (tokenizer == nullptr || text.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model=", directory, " must have a tokenizer, and --text=", text_file, " 2 bytes at least"));
  }
  LS_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer->Encode(text));
  std::vector<Reading> readings;
  for (const char* const precision : {"fp32", "bf16"}) {
    LS_ASSIGN_OR_RETURN(
        const std::unique_ptr<LanguageModel> model,
        LoadLanguageModel(opened, {.precision = precision, .devices = device.devices, .gpus = device.gpus}));
    LS_ASSIGN_OR_RETURN(readings.emplace_back(), Read(*model, tokens, piece));
  }
  const Reading &full = readings.front(), &half = readings.back();
  const auto scored = static_cast<double>(tokens.size() - 1);
  int64_t same = 0;
  for (size_t i = 0; i < full.likeliest.size(); ++i) same += full.likeliest[i] == half.likeliest[i] ? 1 : 0;
  const nlohmann::json line = {{"tokens", tokens.size()},
                               {"fp32_bits_per_token", full.bits / scored},
                               {"bf16_bits_per_token", half.bits / scored},
                               {"same_likeliest_token", static_cast<double>(same) / scored},
                               {"fp32_seconds", absl::ToDoubleSeconds(full.took)},
                               {"bf16_seconds", absl::ToDoubleSeconds(half.took)}};
  std::cout << line.dump() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const absl::Status status = longshort::Main({argv + 1, argv + argc});
  if (!status.ok()) std::cerr << "longshort-bf16-difference: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
