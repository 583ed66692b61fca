#include "models/language_model/placed_language_model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longshort {

const LanguageModel* PlacedLanguageModel::Find(const WorkerDevice& device) const {
  for (const Place& place : places_) {
    if (place.device.IsOnDeviceOf(device)) return place.model.get();
  }
  return nullptr;
}

const LanguageModel& PlacedLanguageModel::On(const WorkerDevice& device) const {
  const LanguageModel* const model = Find(device);
  return model == nullptr ? first() : *model;
}

absl::StatusOr<std::unique_ptr<LanguageModel>> PlacedLanguageModel::Replicate(const WorkerDevice& device) const {
  if (const LanguageModel* const model = Find(device); model != nullptr) return model->Replicate(device);
  const auto append_name = [](std::string* text, const Place& place) {
    absl::StrAppend(text, DeviceName(place.device));
  };
  return absl::UnimplementedError(absl::StrCat("the model is on ", absl::StrJoin(places_, ", ", append_name),
                                               " and cannot run on ", DeviceName(device)));
}

}  // namespace longshort
