#include "tests/bench/gpu/classifier_times.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "models/families/load_model.h"
#include "tests/bench/gpu/device_tools.h"

namespace longshort {
namespace {

int64_t Scattered(int64_t index, int64_t item) { return 7919 * index + 104729 * item; }

models::ClassifierItem MakeItem(const models::LoadedClassifier& model, int64_t tokens, int64_t item) {
  const models::ClassifierInfo& info = model.weights.info();
  if (info.input == models::ClassifierInput::kImage) {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(model.preprocessor->pixels())));
    models::ImageItem image{.height = side, .width = side, .values = std::vector<float>(info.channels * side * side)};
    for (size_t i = 0; i < image.values.size(); ++i) {
      image.values[i] = static_cast<float>(Scattered(static_cast<int64_t>(i), item) % 1021) / 510.0F - 1.0F;
    }
    return image;
  }
  models::TokenItem texts{.documents = std::vector<std::vector<int32_t>>(info.documents)};
  int64_t number = item * info.documents;
  for (std::vector<int32_t>& document : texts.documents) {
    document.resize(tokens == 0 ? info.max_document_tokens : std::min(tokens, info.max_document_tokens));
    for (size_t i = 0; i < document.size(); ++i) {
      document[i] = static_cast<int32_t>(1 + Scattered(static_cast<int64_t>(i), number) % (info.vocabulary_size - 1));
    }
    ++number;
  }
  return texts;
}

}  // namespace

absl::StatusOr<nlohmann::json> MeasureClassifier(const ClassifierWork& work, const GoldenDevice& device) {
  const int64_t used_before = UsedMemory(device);
  LS_ASSIGN_OR_RETURN(
      const models::LoadedModel loaded,
      models::LoadModel(work.model, {.precision = work.precision, .devices = device.devices, .gpus = device.gpus}));
  const auto* const model = std::get_if<models::LoadedClassifier>(&loaded);
  if (model == nullptr) return absl::InvalidArgumentError(absl::StrCat(work.model, " is no classifier"));
  // A worker's, as it is served.
  const models::WorkerDevice worker = device.devices.empty() ? models::WorkerDevice{} : device.devices.front();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<models::Classifier> replica, model->weights.NewReplica(worker));
  std::vector<models::ClassifierItem> items;
  for (int64_t item = 0; item < work.items; ++item) items.push_back(MakeItem(*model, work.tokens, item));
  std::vector<const models::ClassifierItem*> batch;
  for (const models::ClassifierItem& item : items) batch.push_back(&item);

  nlohmann::json found;
  const ResidentPeak resident;
  const auto run = [&](int64_t min_runs, double min_seconds) -> absl::StatusOr<std::vector<double>> {
    std::vector<double> seconds;
    for (double sum = 0; std::ssize(seconds) < min_runs || sum < min_seconds; sum += seconds.back()) {
      const absl::Time begin = absl::Now();
      LS_ASSIGN_OR_RETURN(const models::ClassifierResult result, replica->Classify(batch));
      seconds.push_back(absl::ToDoubleSeconds(absl::Now() - begin));
      found["batch_flops"] = 2 * result.counts.multiply_adds;
      const auto last = result.rows.last(model->weights.info().classes);
      found["logits"] = std::vector<float>(last.begin(), last.end());
    }
    return seconds;
  };
  LS_RETURN_IF_ERROR(run(work.warm_up_runs, work.seconds / 4).status());
  if (work.in_turns) {
    LS_RETURN_IF_ERROR(RunInTurns([&]() -> absl::StatusOr<double> {
      LS_ASSIGN_OR_RETURN(const std::vector<double> seconds, run(1, 0));
      return seconds.front();
    }));
  } else {
    LS_ASSIGN_OR_RETURN(found["batch_seconds"], run(work.runs, work.seconds));
  }
  found["resident_peak"] = resident.Bytes();
  found["used_memory"] = UsedMemory(device) - used_before;
  return found;
}

}  // namespace longshort
