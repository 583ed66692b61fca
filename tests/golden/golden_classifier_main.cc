// longshort-golden-classifier: runs one file of a golden case through the served classifier, in batches of several
// kinds.
//
// Prints one JSON object a line for each kind: {"mode": ..., "largest_difference": ..., "items": ...}. The difference
// is of logits, and of embeddings where the file has them, null if the model returned no number; items counts the rows
// compared. On an emulated GPU there is also
// "kernels": how many have run so far. Whether that is good enough is
// for the caller to say (tests/golden/run): the exit code is 0 whenever the model ran.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/families/load_model.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_device.h"
#include "tests/golden/golden_items.h"

ABSL_FLAG(std::string, model, "", "Model directory: config.json and model.safetensors");
ABSL_FLAG(std::string, file, "", "The case's io.safetensors");
ABSL_FLAG(std::string, device, "cpu", "Where the model runs: cpu, emulated:N or cuda:N");
ABSL_FLAG(int32_t, threads, 0, "Threads of the model; 0: all that the machine gives");
ABSL_FLAG(int32_t, copies, 3, "How often each item stands in the shuffled mix");
ABSL_FLAG(int32_t, padding, 0, "Id that documents are padded with");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the mix");

namespace longshort {
namespace {

// The largest difference of several batches, and how many items they had.
struct Comparison {
  double largest_difference = 0;
  int64_t items = 0;

  void Add(double difference) {
    // A NaN stays.
    if (!(difference <= largest_difference)) largest_difference = difference;
  }
};

// Runs the items as one batch.
absl::Status RunBatch(models::Classifier& classifier, models::ClassifierOutput output,
                      absl::Span<const GoldenItem> batch, Comparison& comparison) {
  std::vector<const models::ClassifierItem*> items;
  for (const GoldenItem& item : batch) items.push_back(&item.item);
  LS_ASSIGN_OR_RETURN(const models::ClassifierResult result, classifier.Run(items, output));
  size_t next = 0;
  for (const GoldenItem& item : batch) {
    if (result.rows.size() != batch.size() * item.expected.size()) {
      return absl::InternalError(
          absl::StrFormat("%d numbers for %d items of %d", result.rows.size(), batch.size(), item.expected.size()));
    }
    for (const float expected : item.expected) {
      comparison.Add(std::abs(static_cast<double>(result.rows[next++]) - expected));
    }
  }
  comparison.items += static_cast<int64_t>(batch.size());
  return absl::OkStatus();
}

void Print(const std::string& mode, const Comparison& comparison, const GoldenDevice& device) {
  nlohmann::json line = {
      {"mode", mode}, {"largest_difference", comparison.largest_difference}, {"items", comparison.items}};
  if (device.kernels_run != nullptr) line["kernels"] = device.kernels_run();
  std::cout << line.dump() << std::endl;
}

absl::Status RunFile(models::Classifier& classifier, const GoldenDevice& device) {
  Comparison whole, one_by_one, mixed;
  std::mt19937_64 random(absl::GetFlag(FLAGS_seed));
  const std::pair<std::string, models::ClassifierOutput> outputs[] = {
      {"logits", models::ClassifierOutput::kLogits},
      {"first", models::ClassifierOutput::kFeatures},
      {"mean", models::ClassifierOutput::kMeanOfTokens}};
  for (const auto& [tensor, output] : outputs) {
    LS_ASSIGN_OR_RETURN(const std::vector<GoldenBatch> batches, ReadGoldenBatches(absl::GetFlag(FLAGS_file), tensor));
    for (const GoldenBatch& batch : batches) {
      LS_RETURN_IF_ERROR(RunBatch(classifier, output, batch, whole));
      for (const GoldenItem& item : batch) LS_RETURN_IF_ERROR(RunBatch(classifier, output, {&item, 1}, one_by_one));
      const GoldenBatch mix = ShuffledMix(batch, absl::GetFlag(FLAGS_copies), absl::GetFlag(FLAGS_padding), random);
      LS_RETURN_IF_ERROR(RunBatch(classifier, output, mix, mixed));
    }
  }
  Print("whole batch", whole, device);
  Print("one by one", one_by_one, device);
  Print("shuffled mix", mixed, device);
  return absl::OkStatus();
}

absl::Status Run() {
  LS_ASSIGN_OR_RETURN(const GoldenDevice device, FindGoldenDevice(absl::GetFlag(FLAGS_device)));
  LS_ASSIGN_OR_RETURN(
      const models::LoadedModel loaded,
      models::LoadModel(absl::GetFlag(FLAGS_model),
                        {.threads = absl::GetFlag(FLAGS_threads), .devices = device.devices, .gpus = device.gpus}));
  const auto* classifier = std::get_if<models::LoadedClassifier>(&loaded);
  if (classifier == nullptr) return absl::InvalidArgumentError("the model is no classifier");
  // A worker's, as it is served.
  const models::WorkerDevice worker = device.devices.empty() ? models::WorkerDevice{} : device.devices.front();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::Classifier> replica, classifier->weights.NewReplica(worker));
  return RunFile(*replica, device);
}

}  // namespace
}  // namespace longshort

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Runs one file of a classifier's golden case: --model=DIR --file=FILE");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = longshort::Run();
  if (!status.ok()) std::cerr << "longshort-golden-classifier: " << status.message() << std::endl;
  return status.ok() ? 0 : 1;
}
