#include "models/train/checkpoint.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"
#include "models/weights/safetensors.h"
#include "models/weights/safetensors_writer.h"
#include "models/weights/tensor_values.h"

namespace longshort {

absl::Status SaveCheckpoint(const std::string& path, const TrainingState& state) {
  std::vector<at::Tensor> values;
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& tensor : state.tensors) {
    values.push_back(tensor.value.detach().contiguous());
    tensors.push_back(
        {.name = tensor.name,
         .type = DataType::kF32,
         .shape = values.back().sizes().vec(),
         .data = {static_cast<const std::byte*>(values.back().const_data_ptr()), values.back().nbytes()}});
  }
  return WriteSafetensors(path, tensors,
                          {{"steps_done", absl::StrCat(state.steps_done)}, {"settings", state.settings}});
}

absl::Status LoadCheckpoint(const std::string& path, TrainingState& state) {
  LS_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const auto text = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (text("settings") != state.settings) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": belongs to a run with other settings (",
                                                      text("settings"), "), not (", state.settings,
                                                      "); give another --checkpoint"));
  }
  if (!absl::SimpleAtoi(text("steps_done"), &state.steps_done) || state.steps_done < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": steps_done is '", text("steps_done"), "', not a number from 0 on"));
  }
  const c10::NoGradGuard no_grad;
  for (NamedParameter& tensor : state.tensors) {
    const StoredTensor* const saved = file.Find(tensor.name);
    const auto shape = tensor.value.sizes();
    if (saved == nullptr || !std::equal(shape.begin(), shape.end(), saved->shape.begin(), saved->shape.end())) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": tensor ", tensor.name, " is missing or of another shape"));
    }
    at::Tensor value = at::empty(shape);
    LS_RETURN_IF_ERROR(
        ReadAsFloat32(file, *saved, {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())}));
    tensor.value.copy_(value);
  }
  return absl::OkStatus();
}

}  // namespace longshort
