// longshort-bf16-difference: what bfloat16 changes of a model's answers on a device. Reads a file by the same model in
// float32 and in bfloat16, and prints one JSON object, of a language model
//   {"tokens": ..., "fp32_bits_per_token": ..., "bf16_bits_per_token": ..., "same_likeliest_token": share, ...}
// and of a classifier
//   {"items": ..., "same_likeliest_class": share, "largest_change": ...}
// of probabilities. Whether that is good enough is for the caller to say (tests/gpu/bf16.py).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/option_table.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "models/families/language_model/transformer_ls.h"
#include "models/families/load_model.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"

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

absl::StatusOr<Reading> Read(models::LanguageModel& model, absl::Span<const int32_t> tokens, int64_t piece) {
  const models::LanguageModelInfo& info = model.info();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<core::PagedCache> cache,
                      core::PagedCache::Create(model, core::PagesForStreams(info, 2)));
  const auto count = static_cast<int64_t>(tokens.size());
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<core::CachedSequence> sequence, cache->Begin(tokens, 0, count));
  Reading reading;
  const absl::Time begin = absl::Now();
  while (sequence->position() < count) {
    const int64_t position = sequence->position();
    models::Slice slice;
    slice.tokens = tokens.subspan(position, sequence->MaxTokens(std::min(piece, count - position)));
    slice.logit_rows = static_cast<int64_t>(slice.tokens.size());
    LS_RETURN_IF_ERROR(sequence->FillIn(slice));
    LS_ASSIGN_OR_RETURN(const models::StepResult result, model.Step({slice}));
    for (int64_t row = 0; row < slice.logit_rows && position + row + 1 < count; ++row) {
      AddRow(result.logits.subspan(row * info.vocabulary_size, info.vocabulary_size), tokens[position + row + 1],
             reading);
    }
    sequence->OnRead(slice.tokens);
  }
  reading.took = absl::Now() - begin;
  return reading;
}

struct Options {
  std::string model, file, device = "cpu", precision = "bf16";
  int64_t max_bytes = 1 << 20, piece = 256;
  bool help = false;
};

absl::StatusOr<nlohmann::json> CompareLanguageModel(const Options& options, const models::ModelDirectory& directory,
                                                    const GoldenDevice& device) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::Tokenizer> tokenizer, models::LoadTokenizer(directory));
  std::ifstream file(options.file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.resize(std::min<size_t>(text.size(), options.max_bytes));
  if (tokenizer == nullptr || text.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--model=", options.model, " must have a tokenizer, and --file=", options.file, " 2 bytes at least"));
  }
  LS_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, tokenizer->Encode(text));
  std::vector<Reading> readings;
  for (const std::string& precision : {std::string("fp32"), options.precision}) {
    LS_ASSIGN_OR_RETURN(
        const models::LanguageModelWeights weights,
        models::LoadLanguageModel(directory, {.precision = precision, .devices = device.devices, .gpus = device.gpus}));
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::LanguageModel> model, weights.NewReplica(device.devices.front()));
    LS_ASSIGN_OR_RETURN(readings.emplace_back(), Read(*model, tokens, options.piece));
  }
  const Reading &full = readings.front(), &half = readings.back();
  const auto scored = static_cast<double>(tokens.size() - 1);
  int64_t same = 0;
  for (size_t i = 0; i < full.likeliest.size(); ++i) same += full.likeliest[i] == half.likeliest[i] ? 1 : 0;
  return nlohmann::json{{"tokens", tokens.size()},
                        {"fp32_bits_per_token", full.bits / scored},
                        {options.precision + "_bits_per_token", half.bits / scored},
                        {"same_likeliest_token", static_cast<double>(same) / scored},
                        {"fp32_seconds", absl::ToDoubleSeconds(full.took)},
                        {options.precision + "_seconds", absl::ToDoubleSeconds(half.took)}};
}

// What a line of the file says: a document, or the path of an image.
absl::StatusOr<models::ClassifierItem> MakeItem(const models::LoadedClassifier& model, const std::string& line) {
  if (model.preprocessor == nullptr) {
    const int64_t max = model.weights.info().max_document_tokens;
    LS_ASSIGN_OR_RETURN(models::DocumentBeginning document, model.tokenizer->EncodeBeginning(line, max));
    return models::TokenItem{.documents = {std::move(document.ids)}};
  }
  std::ifstream file(line, std::ios::binary);
  return model.preprocessor->Decode(std::string((std::istreambuf_iterator<char>(file)), {}));
}

// The probabilities of each line's classes.
absl::StatusOr<std::vector<std::vector<double>>> ClassifyLines(const models::LoadedClassifier& model,
                                                               const std::string& path, const GoldenDevice& device) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::Classifier> worker,
                      model.weights.NewReplica(device.devices.front()));
  std::ifstream file(path);
  std::vector<std::vector<double>> found;
  for (std::string line; std::getline(file, line);) {
    LS_ASSIGN_OR_RETURN(const models::ClassifierItem item, MakeItem(model, line));
    const models::ClassifierItem* const batch = &item;
    LS_ASSIGN_OR_RETURN(const models::ClassifierResult result, worker->Classify({&batch, 1}));
    std::vector<double>& probabilities = found.emplace_back();
    double sum = 0;
    const double largest = *std::max_element(result.rows.begin(), result.rows.end());
    for (const float logit : result.rows) sum += probabilities.emplace_back(std::exp(logit - largest));
    for (double& probability : probabilities) probability /= sum;
  }
  return found;
}

absl::StatusOr<nlohmann::json> CompareClassifier(const Options& options, const GoldenDevice& device) {
  std::vector<std::vector<std::vector<double>>> answers;
  for (const std::string& precision : {std::string("fp32"), options.precision}) {
    LS_ASSIGN_OR_RETURN(
        const models::LoadedModel loaded,
        models::LoadModel(options.model, {.precision = precision, .devices = device.devices, .gpus = device.gpus}));
    LS_ASSIGN_OR_RETURN(answers.emplace_back(),
                        ClassifyLines(std::get<models::LoadedClassifier>(loaded), options.file, device));
  }
  int64_t same = 0;
  double largest_change = 0;
  for (size_t item = 0; item < answers[0].size(); ++item) {
    const std::vector<double>&full = answers[0][item], &half = answers[1][item];
    const auto likeliest = [](const auto& all) { return std::max_element(all.begin(), all.end()) - all.begin(); };
    same += likeliest(full) == likeliest(half) ? 1 : 0;
    for (size_t i = 0; i < full.size(); ++i) largest_change = std::max(largest_change, std::abs(full[i] - half[i]));
  }
  const auto items = static_cast<double>(answers[0].size());
  return nlohmann::json{{"items", answers[0].size()},
                        {"same_likeliest_class", static_cast<double>(same) / items},
                        {"largest_change", largest_change}};
}

absl::Status Main(const std::vector<std::string>& arguments) {
  Options options;
  OptionTable table;
  table.Add("model", "DIR", "Directory of a language model of bytes, or of a classifier of single documents or images.",
            &options.model);
  table.Add("file", "FILE", "What it reads: a text, or a document or the path of an image in each line.",
            &options.file);
  table.Add("most-bytes", "N", "Of the text, from its beginning.", &options.max_bytes);
  table.Add("device", "DEVICE", "cpu, emulated:N or cuda:N.", &options.device);
  table.AddChoice<std::string>("precision", {{"bf16", "bf16"}, {"int8", "int8"}}, "Compared with fp32.",
                               &options.precision);
  table.Add("piece", "N", "Tokens of a language model's step.", &options.piece);
  table.AddSwitch("help", "Print this and exit.", &options.help);
  LS_RETURN_IF_ERROR(table.Parse(arguments));
  if (options.help) {
    std::cout << table.Help();
    return absl::OkStatus();
  }
  LS_ASSIGN_OR_RETURN(const GoldenDevice device, FindGoldenDevice(options.device));
  LS_ASSIGN_OR_RETURN(const models::ModelDirectory opened, models::OpenModelDirectory(options.model));
  const bool is_language_model =
      nlohmann::json::parse(opened.config_text).value("architecture", "") == "language_model";
  LS_ASSIGN_OR_RETURN(const nlohmann::json found, is_language_model ? CompareLanguageModel(options, opened, device)
                                                                    : CompareClassifier(options, device));
  std::cout << found.dump() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  const absl::Status status = longshort::Main({argv + 1, argv + argc});
  if (!status.ok()) std::cerr << "longshort-bf16-difference: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
