#include "models/language_model/loading/placed_language_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longshort {

absl::StatusOr<std::unique_ptr<LanguageModel>> PlacedLanguageModel::Replicate(const WorkerDevice& device) const {
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [&device](const Place& other) { return other.device.IsOnDeviceOf(device); });
  if (place != places_.end()) return place->model->Replicate(device);
  const auto append_name = [](std::string* text, const Place& other) {
    absl::StrAppend(text, DeviceName(other.device));
  };
  return absl::UnimplementedError(absl::StrCat("the model is on ", absl::StrJoin(places_, ", ", append_name),
                                               " and cannot run on ", DeviceName(device)));
}

const LanguageModel& PlacedLanguageModel::On(const WorkerDevice& device) const {
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [&device](const Place& other) { return other.device.IsOnDeviceOf(device); });
  return place == places_.end() ? first() : *place->model;
}

}  // namespace longshort
